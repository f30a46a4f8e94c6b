"""While loops: Newton, power iteration, conjugate gradients, bisection."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of


@of("f32[16]:positive")
def newton_square_root(x: Array) -> Array:
    return lax.fori_loop(0, 8, lambda i, y: 0.5 * (y + x / y), x)


@of("f32[]:positive")
def newton_until_converged(x: Array) -> tuple[Array, Array]:
    def is_open(state: tuple[Array, Array]) -> Array:
        return (jnp.abs(state[0] ** 3 - x) > 1e-4) & (state[1] < 50)

    def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
        y, n = state
        return y - (y**3 - x) / (3 * y**2), n + 1

    return lax.while_loop(is_open, step, (x, jnp.int32(0)))


@of("f32[8,8]:definite", "f32[8]")
def power_iteration(a: Array, x: Array) -> tuple[Array, Array]:
    def step(_: int, x: Array) -> Array:
        y = a @ x
        return y / jnp.linalg.norm(y)

    x = lax.fori_loop(0, 20, step, x)
    return x @ a @ x, jnp.abs(x)


@of("f32[10,10]:definite", "f32[10]")
def conjugate_gradients(a: Array, b: Array) -> Array:
    return jax.scipy.sparse.linalg.cg(lambda x: a @ x, b, maxiter=10)[0]


@of("f32[8,8]:definite", "f32[8]")
def conjugate_gradients_by_hand(a: Array, b: Array) -> Array:
    def step(_: int, state: tuple[Array, ...]) -> tuple[Array, ...]:
        x, r, p, rr = state
        ap = a @ p
        alpha = rr / (p @ ap)
        x, r = x + alpha * p, r - alpha * ap
        new = r @ r
        return x, r, r + new / rr * p, new

    return lax.fori_loop(0, 4, step, (jnp.zeros(8), b, b, b @ b))[0]


@of("f32[8,8]:definite", "f32[8]")
def gmres(a: Array, b: Array) -> Array:
    return jax.scipy.sparse.linalg.gmres(lambda x: a @ x, b, maxiter=2, restart=5)[0]


@of("f32[]:fraction")
def bisection(target: Array) -> Array:
    def step(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) / 2
        is_above = middle**3 + middle > target
        return jnp.where(is_above, low, middle), jnp.where(is_above, middle, high)

    return lax.fori_loop(0, 20, step, (jnp.float32(0), jnp.float32(1)))[0]


@of("f32[12,12]", "f32[12]")
def jacobi_sweeps(a: Array, b: Array) -> Array:
    diagonal = jnp.abs(a).sum(1) + 1
    rest = a - jnp.diag(jnp.diagonal(a))
    return lax.fori_loop(0, 15, lambda i, x: (b - rest @ x) / diagonal, jnp.zeros(12))


@of("f32[30,3]", "f32[30]")
def gradient_descent(x: Array, y: Array) -> Array:
    loss = lambda w: ((x @ w - y) ** 2).mean()  # noqa: E731 as users write it
    return lax.fori_loop(0, 25, lambda i, w: w - 0.1 * jax.grad(loss)(w), jnp.zeros(3))


@of("f32[30,2]", "f32[3,2]")
def k_means(x: Array, centres: Array) -> tuple[Array, Array]:
    def nearest(centres: Array) -> Array:
        return ((x[:, None] - centres[None]) ** 2).sum(-1).argmin(1)

    def step(_: int, centres: Array) -> Array:
        chosen = jax.nn.one_hot(nearest(centres), 3)
        return (chosen.T @ x) / (chosen.sum(0)[:, None] + 1e-6)

    centres = lax.fori_loop(0, 5, step, centres)
    return centres, nearest(centres)


@of("f32[10,10]:fraction")
def page_rank(links: Array) -> Array:
    transition = links / links.sum(0)
    return lax.fori_loop(0, 30, lambda i, r: 0.85 * transition @ r + 0.015, jnp.full(10, 0.1))


@of("f32[8,6]:fraction", "f32[8]:fraction", "f32[6]:fraction")
def sinkhorn(costs: Array, a: Array, b: Array) -> Array:
    kernel = jnp.exp(-costs * 5)
    a, b = a / a.sum(), b / b.sum()

    def step(_: int, v: Array) -> Array:
        return b / (kernel.T @ (a / (kernel @ v)))

    v = lax.fori_loop(0, 20, step, jnp.ones(6))
    return (a / (kernel @ v))[:, None] * kernel * v


@of("s32[]:below1000", "s32[]:below1000")
def greatest_common_divisor(a: Array, b: Array) -> Array:
    return jnp.gcd(a + 1, b + 1)


@of("s32[32]:below100000")
def collatz_steps(n: Array) -> Array:
    def steps(n: Array) -> Array:
        def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
            n, count = state
            return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1

        return lax.while_loop(lambda s: s[0] > 1, step, (n + 1, jnp.int32(0)))[1]

    return jax.vmap(steps)(n)


@of("f32[20,20]")
def mandelbrot_counts(noise: Array) -> Array:
    re, im = jnp.meshgrid(jnp.linspace(-2, 1, 20), jnp.linspace(-1.2, 1.2, 20))
    c = re + 1j * im + noise * 0.01

    def step(_: int, state: tuple[Array, Array]) -> tuple[Array, Array]:
        z, n = state
        z = jnp.where(jnp.abs(z) < 4, z * z + c, z)
        return z, n + (jnp.abs(z) < 2)

    return lax.fori_loop(0, 15, step, (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)))[1]


@of("f32[5]:positive")
def fixed_point_with_cosine(x: Array) -> Array:
    return lax.fori_loop(0, 40, lambda i, y: jnp.cos(y), x)


@of("f32[]:fraction")
def logistic_map(x: Array) -> Array:
    return lax.scan(lambda y, _: (3.2 * y * (1 - y), y), x, None, length=40)[1]


@of("f32[]:fraction")
def chaotic_logistic_map(x: Array) -> Array:
    return lax.scan(lambda y, _: (3.9 * y * (1 - y), y), x, None, length=60)[1]


@of("f32[4]", "pred[]")
def branches(x: Array, flag: Array) -> tuple[Array, Array]:
    chosen = lax.cond(flag, lambda y: jnp.exp(y) / 3, lambda y: jnp.log1p(y * y), x)
    switched = lax.switch(x.argmax(), [jnp.sin, jnp.cos, jnp.tanh, jnp.square], x)
    return chosen, switched


@of("f32[3]")
def newton_by_forward_jacobian(x: Array) -> Array:
    def f(v: Array) -> Array:
        return jnp.stack([v[0] ** 2 + v[1] - 3, jnp.sin(v[1]) + v[2], v[2] ** 3 + v[0] - 1])

    def step(_: int, v: Array) -> Array:
        jacobian = jax.jacfwd(f)(v) + 0.1 * jnp.eye(3, dtype=v.dtype)
        return v - jnp.linalg.solve(jacobian, f(v))

    return lax.fori_loop(0, 4, step, x)


@of("f32[20]:positive", "s32[20]:below8")
def loops_of_each_element(x: Array, most: Array) -> tuple[Array, Array]:
    def one(x: Array, most: Array) -> tuple[Array, Array]:
        def is_open(state: tuple[Array, Array]) -> Array:
            return (state[0] > 0.05) & (state[1] < most)

        def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
            return state[0] * 0.6 + 0.1 * jnp.sin(state[0]), state[1] + 1

        return lax.while_loop(is_open, step, (x, jnp.asarray(0)))

    return jax.vmap(one)(x, most)


@of("c64[5]")
def roots_by_durand_and_kerner(given: Array) -> Array:
    c = jnp.concatenate([jnp.ones(1, given.dtype), given])
    first = jnp.power(jnp.asarray(0.4 + 0.9j, c.dtype), jnp.arange(5))

    def step(_: int, z: Array) -> Array:
        apart = z[:, None] - z + jnp.eye(5, dtype=z.dtype)
        return z - jnp.polyval(c, z) / jnp.prod(apart, axis=1)

    return lax.fori_loop(0, 6, step, first)


@of("f32[7,7]", "f32[7]")
def lanczos(a: Array, v: Array) -> tuple[Array, Array]:
    symmetric = (a + a.T) / 2
    State = tuple[Array, Array, Array]

    def step(state: State, _: None) -> tuple[State, tuple[Array, Array]]:
        before, v, beta = state
        w = symmetric @ v - beta * before
        alpha = w @ v
        w = w - alpha * v
        beta = jnp.linalg.norm(w)
        return (v, w / beta, beta), (alpha, beta)

    init = (jnp.zeros_like(v), v / jnp.linalg.norm(v), jnp.zeros((), v.dtype))
    return lax.scan(step, init, None, length=4)[1]
