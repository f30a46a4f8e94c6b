"""Minima and roots by the methods of textbooks, written by hand."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import jax.scipy.optimize
from jax import Array, lax, random

from programs.function import of

State = tuple[Array, ...]


def _valley(x: Array) -> Array:
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@of("f32[20]:grid", "f32[20]", "f32[3]:positive")
def gauss_newton_by_conjugate_gradients(t: Array, y: Array, p: Array) -> tuple[Array, Array]:
    def residual(p: Array) -> Array:
        return p[0] * jnp.exp(-p[1] * t) + p[2] - y

    def step(p: Array, _: None) -> tuple[Array, Array]:
        r, push = jax.linearize(residual, p)
        pull = jax.linear_transpose(push, p)
        normal = lambda v: pull(push(v))[0] + 0.1 * v  # noqa: E731
        move, _ = jax.scipy.sparse.linalg.cg(normal, -pull(r)[0], maxiter=4)
        return p + move, (r**2).sum()

    return lax.scan(step, p, None, length=4)


@of("f32[15]:grid", "f32[15]", "f32[2]:positive")
def levenberg_and_marquardt(t: Array, y: Array, p: Array) -> State:
    def residual(p: Array) -> Array:
        return jnp.sin(p[0] * t) * p[1] - y

    def step(carry: State, _: None) -> tuple[State, Array]:
        p, damp = carry
        r, j = residual(p), jax.jacfwd(residual)(p)
        normal = j.T @ j
        move = jnp.linalg.solve(normal + damp * jnp.diag(jnp.diag(normal) + 1e-6), -j.T @ r)
        better = (residual(p + move) ** 2).sum() < (r**2).sum()
        return (jnp.where(better, p + move, p), jnp.where(better, damp / 3, damp * 2)), better

    (p, damp), taken = lax.scan(step, (p, jnp.float32(1)), None, length=6)
    return p, damp, taken


@of("f32[6,8]", "f32[6,8]", "f32[8]")
def direction_by_two_loops(s: Array, y: Array, gradient: Array) -> Array:
    """The product with an inverse Hessian as L-BFGS has it."""
    y = y / 4 + s
    rho = 1 / jnp.sum(s * y, axis=1)

    def back(q: Array, row: State) -> tuple[Array, Array]:
        s, y, r = row
        a = r * (s @ q)
        return q - a * y, a

    q, a = lax.scan(back, gradient, (s, y, rho), reverse=True)
    q = q * (s[-1] @ y[-1]) / (y[-1] @ y[-1])

    def ahead(z: Array, row: State) -> tuple[Array, None]:
        s, y, r, a = row
        return z + s * (a - r * (y @ z)), None

    return -lax.scan(ahead, q, (s, y, rho, a))[0]


@of("f32[4]")
def backtracking_by_armijo(x: Array) -> State:
    g = jax.grad(_valley)(x)
    here, slope = _valley(x), g @ g

    def fails(state: State) -> Array:
        t, n = state
        return (_valley(x - t * g) > here - 1e-4 * t * slope) & (n < 30)

    t, n = lax.while_loop(fails, lambda s: (s[0] / 2, s[1] + 1), (jnp.float32(1), jnp.int32(0)))
    return x - t * g, t, n


@of("f64[3]")
def bfgs_of_jax(x: Array) -> tuple[Array, Array]:
    found = jax.scipy.optimize.minimize(_valley, x, method="BFGS", options={"maxiter": 3})
    return found.x, found.fun


@of("f32[4,3]")
def simplex_of_nelder_and_mead(points: Array) -> tuple[Array, Array]:
    def cost(x: Array) -> Array:
        return jnp.sum((x - jnp.array([1.0, -0.5, 0.25])) ** 2 * jnp.array([1.0, 3.0, 9.0]))

    def step(points: Array, _: None) -> tuple[Array, Array]:
        values = jax.vmap(cost)(points)
        order = jnp.argsort(values)
        points, values = points[order], values[order]
        centre = points[:-1].mean(0)
        tried = [centre + k * (centre - points[-1]) for k in (1.0, 2.0, -0.5)]
        costs = [cost(x) for x in tried]
        better = jnp.where(costs[1] < costs[0], tried[1], tried[0])
        new = jnp.where(costs[0] < values[0], better, jnp.where(costs[0] < values[-2], *tried[:2]))
        inside = costs[2] < values[-1]
        shrunk = points[0] + (points - points[0]) / 2
        kept = points.at[-1].set(jnp.where(costs[0] < values[-2], new, tried[2]))
        return jnp.where((costs[0] < values[-2]) | inside, kept, shrunk), values[0]

    return lax.scan(step, points, None, length=12)


@of("f32[9]")
def projected_to_the_simplex(x: Array) -> tuple[Array, Array]:
    def project(x: Array) -> Array:
        down = jnp.sort(x)[::-1]
        sums = jnp.cumsum(down) - 1
        k = jnp.arange(1, 10)
        n = jnp.sum(down - sums / k > 0)
        return jnp.maximum(x - sums[n - 1] / n, 0)

    return project(x), jax.jacobian(project)(x)


def _shrink(x: Array, by: Array | float) -> Array:
    return jnp.sign(x) * jnp.maximum(jnp.abs(x) - by, 0)


@of("f32[12,8]", "f32[12]")
def lasso_by_admm(a: Array, b: Array) -> tuple[Array, Array]:
    factor = jax.scipy.linalg.cho_factor(a.T @ a + jnp.eye(8))

    def step(carry: State, _: None) -> tuple[State, Array]:
        z, u = carry
        x = jax.scipy.linalg.cho_solve(factor, a.T @ b + z - u)
        new = _shrink(x + u, 0.5)
        return (new, u + x - new), jnp.linalg.norm(x - new)

    (z, _), gaps = lax.scan(step, (jnp.zeros(8), jnp.zeros(8)), None, length=8)
    return z, gaps


@of("f32[10,6]", "f32[10]")
def lasso_by_accelerated_steps(a: Array, b: Array) -> tuple[Array, Array]:
    rate = 1 / jnp.sum(a**2)

    def step(carry: State, _: None) -> tuple[State, Array]:
        x, y, t = carry
        new = _shrink(y - rate * (a.T @ (a @ y - b)), 0.1 * rate)
        ahead = (1 + jnp.sqrt(1 + 4 * t * t)) / 2
        return (new, new + (t - 1) / ahead * (new - x), ahead), jnp.abs(new).sum()

    (x, _, _), norms = lax.scan(step, (jnp.zeros(6), jnp.zeros(6), jnp.float32(1)), None, length=15)
    return x, norms


@of("f32[10,5]", "f32[10]")
def lasso_by_coordinates(a: Array, b: Array) -> Array:
    squares = (a**2).sum(0)

    def one(j: Array, state: State) -> State:
        w, r = state
        column = a[:, j]
        new = _shrink(column @ r + squares[j] * w[j], 0.3) / squares[j]
        return w.at[j].set(new), r + column * (w[j] - new)

    sweep = lambda _, s: lax.fori_loop(0, 5, one, s)  # noqa: E731
    return lax.fori_loop(0, 4, sweep, (jnp.zeros(5), b))[0]


@of("f32[6,6]:definite", "f32[6]")
def frank_and_wolfe_on_the_simplex(q: Array, c: Array) -> tuple[Array, Array]:
    def step(x: Array, k: Array) -> tuple[Array, Array]:
        g = q @ x + c
        corner = jax.nn.one_hot(jnp.argmin(g), 6)
        return x + 2 / (k + 2) * (corner - x), g @ (x - corner)

    return lax.scan(step, jnp.ones(6) / 6, jnp.arange(10.0))


@of("f64[3,6]", "f64[6]:positive", "f64[6]:positive")
def interior_point_steps(a: Array, x: Array, c: Array) -> State:
    b = a @ x

    def step(carry: State, _: None) -> tuple[State, Array]:
        x, y, s = carry
        mu = 0.2 * (x @ s) / 6
        d = x / s
        right = b - a @ x + a @ (d * (c - a.T @ y - s) - (mu - x * s) / s)
        dy = jnp.linalg.solve((a * d) @ a.T, right)
        ds = c - a.T @ y - s - a.T @ dy
        dx = (mu - x * s - x * ds) / s
        room = lambda v, dv: jnp.min(jnp.where(dv < 0, -v / dv, 10.0))  # noqa: E731
        t = jnp.minimum(1, 0.9 * jnp.minimum(room(x, dx), room(s, ds)))
        return (x + t * dx, y + t * dy, s + t * ds), mu

    start = x, jnp.zeros(3), c
    (x, y, _), mus = lax.scan(step, start, None, length=5)
    return x, y, mus


@of("f32[6,7]", "f32[]:positive")
def transport_in_logs_and_gradient(cost: Array, blur: Array) -> tuple[Array, Array]:
    def distance(cost: Array) -> Array:
        k = -cost / blur

        def step(carry: State, _: None) -> tuple[State, None]:
            f, g = carry
            f = -jnp.log(6.0) - jax.nn.logsumexp(k + g, axis=1)
            g = -jnp.log(7.0) - jax.nn.logsumexp(k + f[:, None], axis=0)
            return (f, g), None

        (f, g), _ = lax.scan(step, (jnp.zeros(6), jnp.zeros(7)), None, length=8)
        return jnp.sum(jnp.exp(f[:, None] + g + k) * cost)

    return jax.value_and_grad(distance)(cost)


@of("f32[5,5]")
def assignment_by_auction(worth: Array) -> tuple[Array, Array]:
    def bid(state: State) -> State:
        prices, owner, n = state
        free = jnp.argmin(jnp.isin(jnp.arange(5), owner))
        net = worth[free] - prices
        two, best = lax.top_k(net, 2)
        prices = prices.at[best[0]].add(two[0] - two[1] + 0.25)
        return prices, owner.at[best[0]].set(free), n + 1

    def goes_on(state: State) -> Array:
        return jnp.any(state[1] < 0) & (state[2] < 60)

    start = jnp.zeros(5), jnp.full(5, -1), jnp.int32(0)
    prices, owner, _ = lax.while_loop(goes_on, bid, start)
    return prices, owner


@of("f32[]:positive", "f32[]:positive")
def root_by_secants_and_halves(a: Array, b: Array) -> State:
    f = lambda x: jnp.cos(x) - x * a / 4  # noqa: E731

    def step(state: State) -> State:
        low, high, n = state
        x = high - f(high) * (high - low) / (f(high) - f(low))
        x = jnp.where((x > low) & (x < high), x, (low + high) / 2)
        left = f(low) * f(x) <= 0
        return jnp.where(left, low, x), jnp.where(left, x, high), n + 1

    def goes_on(s: State) -> Array:
        return (s[1] - s[0] > 1e-4) & (s[2] < 40)

    return lax.while_loop(goes_on, step, (jnp.float32(0), jnp.float32(4) + 0 * b, jnp.int32(0)))


@of("f32[5]", "f32[5]:positive")
def golden_sections(a: Array, w: Array) -> tuple[Array, Array]:
    ratio = (jnp.sqrt(5.0) - 1) / 2

    def one(a: Array, w: Array) -> tuple[Array, Array]:
        f = lambda x: w * (x - a) ** 2 + jnp.abs(x)  # noqa: E731

        def step(_: int, s: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = s
            c, d = high - ratio * (high - low), low + ratio * (high - low)
            less = f(c) < f(d)
            return jnp.where(less, low, c), jnp.where(less, d, high)

        return lax.fori_loop(0, 8, step, (jnp.float32(-3), jnp.float32(3)))

    return jax.vmap(one)(a, w)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _fixed_point(f: object, a: Array) -> Array:
    return lax.fori_loop(0, 20, lambda _, x: f(a, x), jnp.zeros_like(a))  # type: ignore[operator]


def _fixed_ahead(f: object, a: Array) -> tuple[Array, tuple[Array, Array]]:
    x = _fixed_point(f, a)
    return x, (a, x)


def _fixed_back(f: object, kept: tuple[Array, Array], ct: Array) -> tuple[Array]:
    a, x = kept
    _, pull = jax.vjp(f, a, x)  # type: ignore[arg-type]
    w = lax.fori_loop(0, 20, lambda _, w: ct + pull(w)[1], ct)
    return (pull(w)[0],)


_fixed_point.defvjp(_fixed_ahead, _fixed_back)


@of("f32[6]")
def gradient_of_a_fixed_point(a: Array) -> tuple[Array, Array]:
    f = lambda a, x: jnp.tanh(0.5 * x + a)  # noqa: E731
    return jax.value_and_grad(lambda a: jnp.sum(_fixed_point(f, a) ** 2))(a)


@of("u32[2]", "f32[3]")
def evolution_of_a_covariance(key: Array, mean: Array) -> tuple[Array, Array]:
    def step(carry: State, key: Array) -> tuple[State, Array]:
        mean, c = carry
        z = random.normal(key, (12, 3)) @ jnp.linalg.cholesky(c).T
        costs = jax.vmap(_valley)(mean + z)
        best = z[jnp.argsort(costs)[:4]]
        weights = jnp.log(4.5) - jnp.log(jnp.arange(1.0, 5.0))
        weights = weights / weights.sum()
        return (mean + weights @ best, 0.7 * c + 0.3 * (weights * best.T) @ best), costs.min()

    start = mean, 0.1 * jnp.eye(3)
    return lax.scan(step, start, random.split(random.wrap_key_data(key), 3))[0]


@of("u32[2]", "f32[8,2]")
def swarm_of_particles(key: Array, x: Array) -> tuple[Array, Array]:
    def step(carry: State, key: Array) -> tuple[State, Array]:
        x, v, best = carry
        a, b = random.uniform(key, (2, 8, 1))
        costs = jax.vmap(_valley)(best)
        lead = best[jnp.argmin(costs)]
        v = 0.7 * v + 1.4 * a * (best - x) + 1.4 * b * (lead - x)
        x = x + v
        better = jax.vmap(_valley)(x) < costs
        return (x, v, jnp.where(better[:, None], x, best)), costs.min()

    (x, _, _), costs = lax.scan(step, (x, 0 * x, x), random.split(random.wrap_key_data(key), 4))
    return x, costs


@of("f32[4,4]", "f32[4]")
def games_by_multiplied_weights(pay: Array, start: Array) -> tuple[Array, Array]:
    def step(logs: Array, _: None) -> tuple[Array, Array]:
        p = jax.nn.softmax(logs)
        answer = jax.nn.one_hot(jnp.argmax(p @ pay), 4)
        return logs - 0.3 * (pay @ answer), p @ pay @ answer

    return lax.scan(step, start, None, length=20)


@of("f32[4]")
def newton_with_a_damped_hessian(x: Array) -> tuple[Array, Array]:
    def step(x: Array, _: None) -> tuple[Array, Array]:
        g, h = jax.grad(_valley)(x), jax.hessian(_valley)(x)
        low = jnp.linalg.eigvalsh(h)[0]
        h = h + jnp.maximum(0, 0.1 - low) * jnp.eye(4)
        return x - jnp.linalg.solve(h, g), jnp.linalg.norm(g)

    return lax.scan(step, x / 2, None, length=2)
