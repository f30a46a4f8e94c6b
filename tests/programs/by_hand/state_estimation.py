"""Hidden states and sequences: filters of particles and Gaussians, alignments, likelihoods."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax, random
from jax.scipy.special import logsumexp

from programs.function import of

State = tuple[Array, ...]


def _steps(logits: Array) -> Array:
    return jax.nn.log_softmax(logits, axis=-1)


@of("u32[2]", "f32[12]", "f32[40]")
def bootstrap_particle_filter(key: Array, seen: Array, start: Array) -> State:
    def step(carry: State, y: Array) -> tuple[State, State]:
        x, key = carry
        key, noise, pick = random.split(key, 3)
        x = 0.5 * x + 25 * x / (1 + x**2) + random.normal(noise, x.shape)
        logs = -0.5 * (y - x**2 / 20) ** 2
        weights = jax.nn.softmax(logs)
        chosen = jnp.searchsorted(jnp.cumsum(weights), random.uniform(pick, x.shape))
        return (x[jnp.minimum(chosen, 39)], key), (weights @ x, logsumexp(logs) - jnp.log(40.0))

    return lax.scan(step, (start, random.wrap_key_data(key)), seen)[1]


@of("f32[16]", "f32[]:fraction")
def systematic_resampling(logs: Array, offset: Array) -> State:
    weights = jnp.exp(logs - logsumexp(logs))
    places = (jnp.arange(16) + offset) / 16
    ancestors = jnp.searchsorted(jnp.cumsum(weights), places, side="left")
    return jnp.clip(ancestors, 0, 15), 1 / jnp.sum(weights**2), jnp.bincount(ancestors, length=16)


@of("f32[5,5]", "f32[5,7]", "s32[30]:below7")
def forward_and_backward_in_logs(move: Array, emit: Array, seen: Array) -> State:
    move, emit = _steps(move), _steps(emit)

    def ahead(a: Array, y: Array) -> tuple[Array, Array]:
        a = logsumexp(a[:, None] + move, axis=0) + emit[:, y]
        return a, a

    def back(b: Array, y: Array) -> tuple[Array, Array]:
        return logsumexp(move + emit[:, y] + b, axis=1), b

    first = emit[:, seen[0]] - jnp.log(5.0)
    alphas = jnp.concatenate([first[None], lax.scan(ahead, first, seen[1:])[1]])
    last, betas = lax.scan(back, jnp.zeros(5), seen[:0:-1])
    betas = jnp.concatenate([last[None], betas[::-1]])
    return jax.nn.softmax(alphas + betas, axis=-1), logsumexp(alphas[-1])


@of("f32[4,4]", "f32[20,4]")
def likelihood_by_an_associative_scan(move: Array, emit: Array) -> tuple[Array, Array]:
    def meet(a: Array, b: Array) -> Array:
        return logsumexp(a[..., :, :, None] + b[..., None, :, :], axis=-2)

    parts = _steps(move)[None] + emit[:, None, :]
    found = lax.associative_scan(meet, parts)
    return logsumexp(found[:, 0], axis=-1), found[-1]


@of("f32[4,4]", "f32[25,4]")
def most_likely_path(move: Array, emit: Array) -> tuple[Array, Array]:
    def step(best: Array, row: Array) -> tuple[Array, Array]:
        scores = best[:, None] + move
        return scores.max(0) + row, scores.argmax(0)

    best, back = lax.scan(step, emit[0], emit[1:])
    last = best.argmax()
    _, path = lax.scan(lambda s, row: (row[s], s), last, back, reverse=True)
    return best.max(), path


@of("f32[18,6]", "s32[5]:below5")
def labels_without_alignment(logits: Array, labels: Array) -> tuple[Array, Array]:
    """CTC's forward algorithm over labels with blanks in between, and its gradient."""
    wide = jnp.zeros(11, jnp.int32).at[1::2].set(labels + 1)
    skip = (wide[2:] != wide[:-2]) & (wide[2:] != 0)
    skip = jnp.concatenate([jnp.zeros(2, bool), skip])

    def loss(logits: Array) -> Array:
        rows = _steps(logits)[:, wide]
        start = jnp.where(jnp.arange(11) < 2, rows[0], -1e30)

        def step(a: Array, row: Array) -> tuple[Array, None]:
            one = jnp.concatenate([jnp.full(1, -1e30), a[:-1]])
            two = jnp.where(skip, jnp.concatenate([jnp.full(2, -1e30), a[:-2]]), -1e30)
            return jnp.logaddexp(jnp.logaddexp(a, one), two) + row, None

        end, _ = lax.scan(step, start, rows[1:])
        return -jnp.logaddexp(end[-1], end[-2])

    return jax.value_and_grad(loss)(logits)


@of("f32[10,3]", "f32[12,3]")
def time_warped_distance(a: Array, b: Array) -> tuple[Array, Array]:
    cost = jnp.sqrt(((a[:, None] - b[None]) ** 2).sum(-1))

    def row(above: Array, costs: Array) -> tuple[Array, Array]:
        def cell(left: Array, x: tuple[Array, Array, Array]) -> tuple[Array, Array]:
            up, corner, c = x
            new = c + jnp.minimum(left, jnp.minimum(up, corner))
            return new, new

        _, new = lax.scan(cell, jnp.float32(jnp.inf), (above[1:], above[:-1], costs))
        new = jnp.concatenate([jnp.array([jnp.inf]), new])
        return new, new

    start = jnp.full(13, jnp.inf).at[0].set(0)
    last, table = lax.scan(row, start, cost)
    return last[-1], table


@of("f32[7]", "f32[8]", "f32[]:positive")
def soft_time_warping_and_gradient(a: Array, b: Array, gamma: Array) -> State:
    def distance(a: Array, b: Array) -> Array:
        cost = (a[:, None] - b[None]) ** 2

        def row(above: Array, costs: Array) -> tuple[Array, None]:
            def cell(left: Array, x: State) -> tuple[Array, Array]:
                near = jnp.stack([left, x[0], x[1]])
                new = x[2] - gamma * logsumexp(-near / gamma)
                return new, new

            _, new = lax.scan(cell, jnp.float32(1e10), (above[1:], above[:-1], costs))
            return jnp.concatenate([jnp.array([1e10], jnp.float32), new]), None

        start = jnp.full(9, 1e10, jnp.float32).at[0].set(0)
        return lax.scan(row, start, cost)[0][-1]

    return jax.value_and_grad(distance, (0, 1))(a, b)


@of("s32[14]:below4", "s32[17]:below4")
def global_alignment_by_diagonals(a: Array, b: Array) -> tuple[Array, Array]:
    def row(above: Array, letter: Array) -> tuple[Array, Array]:
        matched = above[:-1] + jnp.where(b == letter, 2, -1)
        free = jnp.concatenate([above[:1] - 2, jnp.maximum(matched, above[1:] - 2)])
        at = 2 * jnp.arange(18)
        new = lax.cummax(free + at) - at
        return new, new

    last, table = lax.scan(row, -2 * jnp.arange(18), a)
    return last[-1], table


@of("f32[3,3]:definite", "f32[20,2]", "f32[2,3]")
def square_root_filter(start: Array, seen: Array, see: Array) -> State:
    def step(carry: State, y: Array) -> tuple[State, Array]:
        m, s = carry
        stacked = jnp.block([[jnp.eye(2), jnp.zeros((2, 3))], [(see @ s).T, s.T]])
        r = jnp.linalg.qr(stacked, mode="r")
        gain = jax.scipy.linalg.solve_triangular(r[:2, :2], r[:2, 2:]).T
        m = m + gain @ (y - see @ m)
        wide = jnp.concatenate([r[2:, 2:], 0.1 * jnp.eye(3)])
        s = jnp.linalg.qr(wide, mode="r").T
        return (m, s), jnp.abs(jnp.diag(s))

    (m, s), found = lax.scan(step, (jnp.zeros(3), jnp.linalg.cholesky(start)), seen)
    return m, s @ s.T, found


@of("u32[2]", "f32[30,4]", "f32[2,4]", "f32[2]")
def ensemble_update(key: Array, members: Array, see: Array, y: Array) -> tuple[Array, Array]:
    seen = members @ see.T
    noisy = y + 0.3 * random.normal(random.wrap_key_data(key), (30, 2))
    dx, dy = members - members.mean(0), seen - seen.mean(0)
    inside = dy.T @ dy / 29 + 0.09 * jnp.eye(2)
    gain = jnp.linalg.solve(inside, dy.T @ dx / 29).T
    new = members + (noisy - seen) @ gain.T
    return new, jnp.cov(new.T)


@of("f32[15]", "f32[4]", "f32[4,4]:definite")
def bearings_by_a_linearised_filter(angles: Array, m: Array, p: Array) -> State:
    def see(x: Array) -> Array:
        return jnp.arctan2(x[1] - 2, x[0] + 3)

    move = jnp.eye(4) + 0.1 * jnp.eye(4, k=2)

    def step(carry: State, angle: Array) -> tuple[State, Array]:
        m, p = carry
        m, p = move @ m, move @ p @ move.T + 0.01 * jnp.eye(4)
        h = jax.grad(see)(m)
        s = h @ p @ h + 0.05
        off = angle - see(m)
        off = jnp.mod(off + jnp.pi, 2 * jnp.pi) - jnp.pi
        gain = p @ h / s
        return (m + gain * off, p - jnp.outer(gain, h @ p)), jnp.log(s) + off**2 / s

    (m, p), cost = lax.scan(step, (m, p), angles)
    return m, p, cost


@of("f32[4,4]", "f32[4,6]", "s32[22]:below6")
def one_step_of_baum_and_welch(move: Array, emit: Array, seen: Array) -> State:
    def total(logs: tuple[Array, Array]) -> Array:
        a = logs[1][:, seen[0]]
        for y in range(1, 22):
            a = logsumexp(a[:, None] + logs[0], axis=0) + logs[1][:, seen[y]]
        return logsumexp(a)

    counts = jax.grad(total)((_steps(move), _steps(emit)))
    return tuple(c / c.sum(1, keepdims=True) for c in counts)


@of("f32[25]")
def changepoints_seen_online(data: Array) -> tuple[Array, Array]:
    """Adams and MacKay's run lengths, for a mean that is not known."""
    n = data.shape[0]

    def step(carry: State, x: Array) -> tuple[State, Array]:
        logs, mean, count = carry
        spread = 1 + 1 / count
        seen = -0.5 * (x - mean) ** 2 / spread - 0.5 * jnp.log(2 * jnp.pi * spread)
        grown = logs + seen + jnp.log(0.95)
        changed = logsumexp(logs + seen + jnp.log(0.05))
        logs = jnp.concatenate([changed[None], grown[:-1]])
        logs = logs - logsumexp(logs)
        mean = jnp.concatenate([jnp.zeros(1), ((mean * count + x) / (count + 1))[:-1]])
        count = jnp.concatenate([jnp.ones(1), (count + 1)[:-1]])
        return (logs, mean, count), jnp.argmax(logs)

    start = jnp.full(n, -jnp.inf).at[0].set(0), jnp.zeros(n), jnp.ones(n)
    (logs, _, _), lengths = lax.scan(step, start, data)
    return jnp.exp(logs), lengths


@of("f32[12,3,3]", "f32[12,3]")
def affine_maps_by_an_associative_scan(a: Array, b: Array) -> tuple[Array, Array]:
    def after(x: tuple[Array, Array], y: tuple[Array, Array]) -> tuple[Array, Array]:
        return y[0] @ x[0], (y[0] @ x[1][..., None])[..., 0] + y[1]

    return lax.associative_scan(after, (a / 2, b))


@of("f32[5,5]", "s32[8]:below4", "f32[14]:positive")
def likelihood_of_a_tree(rates: Array, letters: Array, lengths: Array) -> tuple[Array, Array]:
    """Felsenstein's pruning, eight leaves in pairs, with the matrix exponential of rates."""

    def total(lengths: Array) -> Array:
        q = jnp.abs(rates[:4, :4]) * (1 - jnp.eye(4))
        q = (q - jnp.diag(q.sum(1))) / 4
        p = jax.vmap(lambda t: jax.scipy.linalg.expm(q * t))(lengths)
        part = jax.nn.one_hot(letters, 4)
        at = 0
        while part.shape[0] > 1:
            here = jnp.einsum("nij,nj->ni", p[at : at + part.shape[0]], part)
            at += part.shape[0]
            part = here[::2] * here[1::2]
        return jnp.log(part[0].mean())

    return jax.value_and_grad(total)(lengths)


@of("f32[30,3]", "f32[30]")
def recursive_least_squares(x: Array, y: Array) -> tuple[Array, Array]:
    def step(carry: State, row: State) -> tuple[State, Array]:
        w, p = carry
        x, y = row
        px = p @ x
        gain = px / (0.98 + x @ px)
        error = y - w @ x
        return (w + gain * error, (p - jnp.outer(gain, px)) / 0.98), error

    (w, _), errors = lax.scan(step, (jnp.zeros(3), 10 * jnp.eye(3)), (x, y))
    return w, errors


@of("f32[64]", "f32[64]")
def normalised_adaptive_filter(x: Array, d: Array) -> tuple[Array, Array]:
    windows = jnp.stack([jnp.roll(x, k) for k in range(5)], axis=1)[5:]

    def step(w: Array, row: State) -> tuple[Array, Array]:
        u, d = row
        e = d - w @ u
        return w + 0.5 * e * u / (1e-6 + u @ u), e

    return lax.scan(step, jnp.zeros(5), (windows, d[5:]))


@of("u32[2]", "f32[5]:fraction")
def bandit_by_thompson(key: Array, rates: Array) -> tuple[Array, Array]:
    def pull(carry: State, key: Array) -> tuple[State, Array]:
        wins, losses = carry
        draw, coin = random.split(key)
        arm = jnp.argmax(random.beta(draw, wins + 1, losses + 1))
        won = random.bernoulli(coin, rates[arm]).astype(jnp.float32)
        return (wins.at[arm].add(won), losses.at[arm].add(1 - won)), arm

    start = jnp.zeros(5), jnp.zeros(5)
    (wins, losses), arms = lax.scan(pull, start, random.split(random.wrap_key_data(key), 6))
    return wins / jnp.maximum(wins + losses, 1), arms
