"""Differential equations, roots and fixed points by loops."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.experimental.ode import odeint

from programs.function import of

Slope = Callable[[Array, Array], Array]


def _rk4(f: Slope, y: Array, t: Array, h: float) -> Array:
    k1 = f(y, t)
    k2 = f(y + h / 2 * k1, t + h / 2)
    k3 = f(y + h / 2 * k2, t + h / 2)
    k4 = f(y + h * k3, t + h)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def _integrated(f: Slope, y: Array, steps: int, h: float) -> Array:
    times = jnp.arange(steps, dtype=jnp.float32) * h
    return lax.scan(lambda y, t: (_rk4(f, y, t, h),) * 2, y, times)[1]


@of("f32[3]:positive")
def infections_that_spread(y: Array) -> Array:
    def slope(y: Array, t: Array) -> Array:
        s, i, r = y / y.sum()
        new = 0.8 * s * i * (1 + 0.2 * jnp.cos(t))
        return jnp.array([-new, new - 0.3 * i, 0.3 * i])

    return _integrated(slope, y, 30, 0.2)


@of("f32[2]")
def driven_oscillator_of_duffing(y: Array) -> Array:
    def slope(y: Array, t: Array) -> Array:
        return jnp.array([y[1], y[0] - y[0] ** 3 - 0.2 * y[1] + 0.3 * jnp.cos(t)])

    return _integrated(slope, y, 25, 0.1)


@of("f32[4]")
def loss_through_a_neural_equation(y: Array) -> object:
    w = jnp.sin(jnp.arange(16.0)).reshape(4, 4)

    def loss(w: Array, y: Array) -> Array:
        return (_integrated(lambda y, t: jnp.tanh(w @ y), y, 8, 0.25)[-1] ** 2).sum()

    return jax.value_and_grad(loss, (0, 1))(w, y)


@of("f32[2]:positive")
def stiff_decay_by_an_implicit_rule(y: Array) -> Array:
    def slope(y: Array) -> Array:
        return jnp.array([-50 * y[0] + y[1] ** 2, -y[1]])

    def step(y: Array, _: None) -> tuple[Array, Array]:
        def newton(_: int, z: Array) -> Array:
            r = z - y - 0.1 * slope(z)
            return z - jnp.linalg.solve(jnp.eye(2) - 0.1 * jax.jacfwd(slope)(z), r)

        y = lax.fori_loop(0, 3, newton, y)
        return y, y

    return lax.scan(step, y, None, 10)[1]


@of("f32[2]")
def steps_that_adapt_by_bogacki_and_shampine(y: Array) -> object:
    def f(y: Array) -> Array:
        return jnp.array([y[1], (1 - y[0] ** 2) * y[1] - y[0]])

    def more(state: tuple[Array, ...]) -> Array:
        return (state[1] < 2.0) & (state[3] < 60)

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        y, t, h, n = state
        k1 = f(y)
        k2 = f(y + h * k1 / 2)
        k3 = f(y + h * k2 * 3 / 4)
        new = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
        k4 = f(new)
        error = h * jnp.abs(-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8).max()
        ok = error < 1e-3
        grow = jnp.clip(0.9 * (1e-3 / (error + 1e-10)) ** (1 / 3), 0.3, 3.0)
        return (
            jnp.where(ok, new, y),
            jnp.where(ok, t + h, t),
            jnp.minimum(h * grow, 2.01 - t),
            n + 1,
        )

    return lax.while_loop(more, step, (y, jnp.float32(0), jnp.float32(0.1), jnp.int32(0)))


@of("f32[2]", "f32[]:positive")
def odeint_of_a_damped_spring(y: Array, k: Array) -> Array:
    def slope(y: Array, t: Array, k: Array) -> Array:
        return jnp.array([y[1], -k * y[0] - 0.1 * y[1]])

    return odeint(slope, y, jnp.linspace(0.0, 1.0, 4), k)


@of("f32[32]")
def advection_by_weno(u: Array) -> Array:
    def flux(u: Array) -> Array:
        a, b, c = jnp.roll(u, 1), u, jnp.roll(u, -1)
        b0, b1 = (b - a) ** 2, (c - b) ** 2
        w0, w1 = 1 / 3 / (1e-6 + b0) ** 2, 2 / 3 / (1e-6 + b1) ** 2
        return (w0 * (-a / 2 + 3 * b / 2) + w1 * (b / 2 + c / 2)) / (w0 + w1)

    def step(u: Array, _: None) -> tuple[Array, None]:
        f = flux(u)
        return u - 0.2 * (f - jnp.roll(f, 1)), None

    return lax.scan(step, u, None, 5)[0]


@of("f32[12,12]")
def reaction_of_gray_and_scott(x: Array) -> object:
    def lap(a: Array) -> Array:
        return sum(jnp.roll(a, s, d) for s in (1, -1) for d in (0, 1)) - 4 * a

    def step(_: int, state: tuple[Array, Array]) -> tuple[Array, Array]:
        u, v = state
        r = u * v * v
        return u + 0.16 * lap(u) - r + 0.035 * (1 - u), v + 0.08 * lap(v) + r - 0.095 * v

    return lax.fori_loop(0, 8, step, (1 - 0.1 * jnp.abs(x), 0.2 * jnp.abs(x)))


@of("f32[20]:positive")
def cube_roots_by_newton_until_close(a: Array) -> object:
    def more(s: tuple[Array, Array, Array]) -> Array:
        return (s[1] > 1e-5) & (s[2] < 50)

    def step(s: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x = s[0] - (s[0] ** 3 - a) / (3 * s[0] ** 2)
        return x, jnp.max(jnp.abs(x - s[0])), s[2] + 1

    return lax.while_loop(more, step, (a, jnp.float32(1), jnp.int32(0)))


@of("f32[8]:fraction")
def roots_by_bisection_of_each(t: Array) -> Array:
    def root(t: Array) -> Array:
        def body(_: int, ab: tuple[Array, Array]) -> tuple[Array, Array]:
            m = (ab[0] + ab[1]) / 2
            right = m + jnp.sin(m) < t
            return jnp.where(right, m, ab[0]), jnp.where(right, ab[1], m)

        a, b = lax.fori_loop(0, 20, body, (jnp.float32(-1), jnp.float32(2)))
        return (a + b) / 2

    return jax.vmap(root)(t)


@of("f32[6]:positive")
def roots_by_brent_like_steps(c: Array) -> object:
    def f(x: Array, c: Array) -> Array:
        return jnp.exp(x) - 2 - c * x

    def root(c: Array) -> tuple[Array, Array]:
        def more(s: tuple[Array, ...]) -> Array:
            return (jnp.abs(s[1] - s[0]) > 1e-4) & (s[4] < 40)

        def step(s: tuple[Array, ...]) -> tuple[Array, ...]:
            a, b, fa, fb, n = s
            secant = b - fb * (b - a) / (fb - fa)
            inside = (secant > jnp.minimum(a, b)) & (secant < jnp.maximum(a, b))
            m = jnp.where(inside & (n % 3 != 2), secant, (a + b) / 2)
            fm = f(m, c)
            left = fa * fm < 0
            return (
                jnp.where(left, a, m),
                jnp.where(left, m, b),
                jnp.where(left, fa, fm),
                jnp.where(left, fm, fb),
                n + 1,
            )

        a, b = jnp.float32(0), jnp.float32(8)
        s = lax.while_loop(more, step, (a, b, f(a, c), f(b, c), jnp.int32(0)))
        return (s[0] + s[1]) / 2, s[4]

    return jax.vmap(root)(c)


@of("f32[4,4]:definite", "f32[4]")
def systems_by_conjugate_gradients_until_small(a: Array, b: Array) -> object:
    def more(s: tuple[Array, ...]) -> Array:
        return (s[3] > 1e-8) & (s[4] < 12)

    def step(s: tuple[Array, ...]) -> tuple[Array, ...]:
        x, r, p, rr, n = s
        ap = a @ p
        alpha = rr / (p @ ap)
        x, r = x + alpha * p, r - alpha * ap
        new = r @ r
        return x, r, r + new / rr * p, new, n + 1

    return lax.while_loop(more, step, (jnp.zeros(4), b, b, b @ b, jnp.int32(0)))[0]


@of("f32[5]", "f32[5,5]")
def implicit_gradient_of_a_fixed_point(x: Array, w: Array) -> object:
    def solve(x: Array, w: Array) -> Array:
        return lax.fori_loop(0, 15, lambda _, z: jnp.tanh(0.3 * w @ z + x), jnp.zeros(5))

    def root(f: Callable[[Array], Array], start: Array) -> Array:
        return lax.stop_gradient(solve(x, w)) + 0 * start

    def tangent(g: Callable[[Array], Array], y: Array) -> Array:
        return jnp.linalg.solve(jax.jacobian(g)(y), y)

    def loss(x: Array) -> Array:
        z = lax.custom_root(lambda z: z - jnp.tanh(0.3 * w @ z + x), jnp.zeros(5), root, tangent)
        return (z**2).sum()

    return jax.grad(loss)(x)


@of("f32[10]:unit")
def anomalies_by_kepler_and_halley(m: Array) -> Array:
    e = 0.6

    def step(_: int, x: Array) -> Array:
        f, d1, d2 = x - e * jnp.sin(x) - m, 1 - e * jnp.cos(x), e * jnp.sin(x)
        return x - 2 * f * d1 / (2 * d1**2 - f * d2)

    return lax.fori_loop(0, 5, step, m)


@of("f32[6,3]", "f32[6,3]")
def bodies_by_leapfrog(x: Array, v: Array) -> object:
    def pull(x: Array) -> Array:
        d = x[None] - x[:, None]
        r2 = (d**2).sum(-1) + 0.05
        return (d * r2[..., None] ** -1.5).sum(1)

    def step(s: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
        x, v = s
        v = v + 0.01 * pull(x)
        x = x + 0.02 * v
        v = v + 0.01 * pull(x)
        return (x, v), 0.5 * (v**2).sum()

    return lax.scan(step, (x, v), None, 6)


@of("f32[24]")
def burgers_by_spectral_steps(u: Array) -> Array:
    k = jnp.fft.rfftfreq(24, 1 / 24) * 2j * jnp.pi / 24

    def slope(u: Array, t: Array) -> Array:
        h = jnp.fft.rfft(u)
        return -u * jnp.fft.irfft(k * h, 24) + 0.05 * jnp.fft.irfft(k * k * h, 24)

    return _integrated(slope, u, 6, 0.1)
