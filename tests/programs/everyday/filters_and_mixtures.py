"""Kalman filters, hidden Markov models and expectation maximisation in f32."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.linalg import cho_factor, cho_solve, solve_triangular
from jax.scipy.stats import multivariate_normal, norm

from programs.function import of


@of("f32[12,2]", "f32[4,4]:definite", "f32[2,2]:definite")
def filter_of_a_moving_point(ys: Array, q: Array, r: Array) -> object:
    a = jnp.eye(4) + 0.1 * jnp.eye(4, k=2)
    h = jnp.eye(2, 4)

    def step(state: tuple[Array, Array], y: Array) -> tuple[tuple[Array, Array], Array]:
        m, p = state
        m, p = a @ m, a @ p @ a.T + 0.1 * q
        s = h @ p @ h.T + r
        gain = jnp.linalg.solve(s, h @ p).T
        error = y - h @ m
        likelihood = multivariate_normal.logpdf(error, jnp.zeros(2), s)
        return (m + gain @ error, p - gain @ s @ gain.T), likelihood

    return lax.scan(step, (jnp.zeros(4), jnp.eye(4)), ys)


@of("f32[10]", "f32[]:positive", "f32[]:positive")
def likelihood_of_a_local_level_and_gradient(ys: Array, q: Array, r: Array) -> object:
    def loss(q: Array, r: Array) -> Array:
        def step(state: tuple[Array, Array], y: Array) -> tuple[tuple[Array, Array], Array]:
            m, p = state
            p = p + q
            s = p + r
            k = p / s
            log = norm.logpdf(y, m, jnp.sqrt(s))
            return (m + k * (y - m), (1 - k) * p), log

        return -lax.scan(step, (jnp.float32(0), jnp.float32(10)), ys)[1].sum()

    return jax.value_and_grad(loss, (0, 1))(q, r)


@of("f32[10,3]", "f32[3,3]:definite")
def joseph_form_with_cholesky(ys: Array, r: Array) -> object:
    def step(state: tuple[Array, Array], y: Array) -> tuple[tuple[Array, Array], Array]:
        m, p = state
        p = p + 0.1 * jnp.eye(3)
        s = p + r
        gain = cho_solve(cho_factor(s), p).T
        rest = jnp.eye(3) - gain
        return (m + gain @ (y - m), rest @ p @ rest.T + gain @ r @ gain.T), m

    return lax.scan(step, (jnp.zeros(3), jnp.eye(3)), ys)


@of("f32[8,2]")
def smoother_of_rauch_tung_striebel(ys: Array) -> object:
    a = jnp.array([[1.0, 0.2], [0.0, 0.9]])

    def ahead(state: tuple[Array, Array], y: Array) -> tuple[tuple[Array, Array], object]:
        m, p = a @ state[0], a @ state[1] @ a.T + 0.1 * jnp.eye(2)
        k = p @ jnp.linalg.inv(p + jnp.eye(2))
        new = m + k @ (y - m), (jnp.eye(2) - k) @ p
        return new, (*new, m, p)

    last, kept = lax.scan(ahead, (jnp.zeros(2), jnp.eye(2)), ys)

    def back(state: tuple[Array, Array], xs: object) -> tuple[tuple[Array, Array], object]:
        m, p, ahead_m, ahead_p = xs
        g = p @ a.T @ jnp.linalg.inv(ahead_p)
        new = m + g @ (state[0] - ahead_m), p + g @ (state[1] - ahead_p) @ g.T
        return new, new

    shifted = (kept[0][:-1], kept[1][:-1], kept[2][1:], kept[3][1:])
    return lax.scan(back, last, shifted, reverse=True)[1]


@of("f32[12]", "f32[2]", "f32[2]:positive")
def extended_filter_of_a_pendulum(ys: Array, start: Array, noise: Array) -> object:
    def move(x: Array) -> Array:
        return jnp.array([x[0] + 0.05 * x[1], x[1] - 0.05 * 9.81 * jnp.sin(x[0])])

    def step(state: tuple[Array, Array], y: Array) -> tuple[tuple[Array, Array], Array]:
        m, p = state
        f = jax.jacfwd(move)(m)
        m, p = move(m), f @ p @ f.T + jnp.diag(noise) * 0.01
        h = jax.grad(lambda x: jnp.sin(x[0]))(m)
        s = h @ p @ h + 0.1
        k = p @ h / s
        return (m + k * (y - jnp.sin(m[0])), p - jnp.outer(k, h @ p)), m

    return lax.scan(step, (start, jnp.eye(2)), ys)


@of("f32[10]")
def unscented_filter_of_a_cubic(ys: Array) -> object:
    def step(state: tuple[Array, Array], y: Array) -> tuple[tuple[Array, Array], Array]:
        m, p = state
        root = jnp.sqrt(3 * p)
        points = jnp.array([m, m + root, m - root])
        weights = jnp.array([2 / 3, 1 / 6, 1 / 6])
        moved = 0.5 * points + 2 * jnp.cos(points)
        m = weights @ moved
        p = weights @ (moved - m) ** 2 + 0.1
        seen = moved**2 / 5
        mean = weights @ seen
        s = weights @ (seen - mean) ** 2 + 1
        cross = weights @ ((moved - m) * (seen - mean))
        k = cross / s
        return (m + k * (y - mean), p - k * s * k), m

    return lax.scan(step, (jnp.float32(0), jnp.float32(1)), ys)


@of("f32[20]", "f32[3]", "f32[3]:positive", "f32[3]")
def steps_of_em_of_a_mixture(x: Array, mean: Array, sd: Array, logits: Array) -> object:
    def step(
        state: tuple[Array, Array, Array], _: None
    ) -> tuple[tuple[Array, Array, Array], Array]:
        mean, sd, log_weight = state
        joint = norm.logpdf(x[:, None], mean, sd) + log_weight
        total = jax.nn.logsumexp(joint, 1, keepdims=True)
        r = jnp.exp(joint - total)
        n = r.sum(0)
        mean = r.T @ x / n
        sd = jnp.sqrt((r * (x[:, None] - mean) ** 2).sum(0) / n + 1e-3)
        return (mean, sd, jnp.log(n / 20)), total.sum()

    return lax.scan(step, (mean, sd, jax.nn.log_softmax(logits)), None, 5)


@of("f32[24,2]", "f32[3,2]")
def em_with_full_covariances(x: Array, means: Array) -> object:
    def step(
        state: tuple[Array, Array, Array], _: None
    ) -> tuple[tuple[Array, Array, Array], Array]:
        means, covs, weights = state
        logs = jax.vmap(lambda m, c: multivariate_normal.logpdf(x, m, c))(means, covs)
        logs = logs + jnp.log(weights)[:, None]
        total = jax.nn.logsumexp(logs, 0)
        r = jnp.exp(logs - total)
        n = r.sum(1) + 1e-6
        means = r @ x / n[:, None]
        centred = x - means[:, None]
        covs = jnp.einsum("kn,kni,knj->kij", r, centred, centred) / n[:, None, None]
        return (means, covs + 0.05 * jnp.eye(2), n / n.sum()), total.mean()

    start = (means, jnp.broadcast_to(jnp.eye(2), (3, 2, 2)), jnp.full(3, 1 / 3))
    return lax.scan(step, start, None, 3)


@of("s32[20]:below4", "f32[3,3]", "f32[3,4]", "f32[3]")
def scaled_forward_and_backward(obs: Array, t: Array, e: Array, start: Array) -> object:
    a, b, pi = jax.nn.softmax(t), jax.nn.softmax(e), jax.nn.softmax(start)

    def ahead(f: Array, o: Array) -> tuple[Array, tuple[Array, Array]]:
        f = (f @ a) * b[:, o]
        c = f.sum()
        return f / c, (f / c, c)

    first = pi * b[:, obs[0]]
    _, (fs, cs) = lax.scan(ahead, first / first.sum(), obs[1:])

    def back(g: Array, xs: tuple[Array, Array]) -> tuple[Array, Array]:
        o, c = xs
        g = a @ (b[:, o] * g) / c
        return g, g

    _, gs = lax.scan(back, jnp.ones(3), (obs[1:], cs), reverse=True)
    fs = jnp.concatenate([first[None] / first.sum(), fs])
    gamma = fs * jnp.concatenate([gs, jnp.ones((1, 3))])
    return gamma / gamma.sum(1, keepdims=True), jnp.log(cs).sum() + jnp.log(first.sum())


@of("s32[15]:below3", "f32[4,4]", "f32[4,3]")
def best_path_with_pointers(obs: Array, t: Array, e: Array) -> object:
    logs, emit = jax.nn.log_softmax(t), jax.nn.log_softmax(e)

    def ahead(v: Array, o: Array) -> tuple[Array, Array]:
        through = v[:, None] + logs
        return through.max(0) + emit[:, o], through.argmax(0)

    v, pointers = lax.scan(ahead, emit[:, obs[0]], obs[1:])
    last = v.argmax()

    def back(s: Array, p: Array) -> tuple[Array, Array]:
        return p[s], p[s]

    _, path = lax.scan(back, last, pointers, reverse=True)
    return v.max(), jnp.append(path, last)


@of("f32[16,3]", "f32[3,3]")
def log_forward_by_an_associative_scan(emissions: Array, t: Array) -> Array:
    logs = jax.nn.log_softmax(t)
    elements = logs + emissions[:, None, :]

    def joined(a: Array, b: Array) -> Array:
        return jax.nn.logsumexp(a[..., :, :, None] + b[..., None, :, :], -2)

    return jax.nn.logsumexp(lax.associative_scan(joined, elements)[:, 0], -1)


@of("f32[30]", "f32[4]")
def soft_k_means_with_annealing(x: Array, centres: Array) -> object:
    def step(c: Array, beta: Array) -> tuple[Array, Array]:
        d = (x[:, None] - c) ** 2
        r = jax.nn.softmax(-beta * d, 1)
        return (r * x[:, None]).sum(0) / r.sum(0), (r * d).sum()

    return lax.scan(step, centres, jnp.array([0.5, 1.0, 2.0, 4.0]))


@of("f32[20,3]", "f32[3,2]", "f32[3]:positive")
def em_of_a_factor_analysis(x: Array, loadings: Array, psi: Array) -> object:
    def step(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
        w, psi = state
        scaled = w.T / psi
        g = jnp.linalg.inv(jnp.eye(2) + scaled @ w)
        z = x @ (g @ scaled).T
        zz = z.T @ z + 20 * g
        w = jnp.linalg.solve(zz, z.T @ x).T
        psi = jnp.maximum((x * x).mean(0) - ((x.T @ z) * w).sum(1) / 20, 1e-2)
        return (w, psi), jnp.log(psi).sum()

    return lax.scan(step, (loadings, psi), None, 4)


@of("f32[14]", "f32[14]", "f32[14]:positive")
def gaussian_process_with_noise(x: Array, y: Array, noise: Array) -> object:
    def loss(length: Array) -> Array:
        k = jnp.exp(-0.5 * ((x[:, None] - x) / length) ** 2) + jnp.diag(noise)
        factor = jnp.linalg.cholesky(k)
        a = solve_triangular(factor, y, lower=True)
        return 0.5 * a @ a + jnp.log(jnp.diagonal(factor)).sum()

    return jax.value_and_grad(loss)(jnp.float32(0.7))


@of("f32[10,2]", "f32[50,2]")
def particles_with_an_effective_number(ys: Array, particles: Array) -> object:
    def step(state: tuple[Array, Array], y: Array) -> tuple[tuple[Array, Array], Array]:
        x, w = state
        x = 0.9 * x + 0.1 * jnp.roll(x, 1, 0)
        w = w + norm.logpdf(y, x, 1.0).sum(1)
        w = jax.nn.log_softmax(w)
        size = jnp.exp(-jax.nn.logsumexp(2 * w))
        return (x, w), size

    return lax.scan(step, (particles, jnp.full(50, -jnp.log(50.0))), ys)
