"""Interpolation, steps of differential equations, n bodies, stencils."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.experimental.ode import odeint

from programs.function import of


@of("f32[100]:fraction", "f32[20]:grid", "f32[20]")
def interpolated(x: Array, xs: Array, ys: Array) -> Array:
    return jnp.interp(x, xs, ys)


@of("f32[12,12]", "f32[30,2]:positive")
def bilinear_samples(image: Array, points: Array) -> Array:
    return jax.scipy.ndimage.map_coordinates(image, list(points.T), order=1)


@of("f32[6]", "f32[50]:unit")
def polynomial(coefficients: Array, x: Array) -> tuple[Array, Array]:
    return jnp.polyval(coefficients, x), jnp.polyval(jnp.polyder(coefficients), x)


@of("f32[20]", "f32[20]")
def fitted_polynomial(x: Array, y: Array) -> Array:
    return jnp.polyfit(x, y, 2)


@of("f32[100]:grid", "f32[100]")
def trapezoids_and_gradients(x: Array, y: Array) -> tuple[Array, Array, Array]:
    return jnp.trapezoid(y, x), jnp.gradient(y), jnp.diff(y, 2)


@of("f32[2]")
def oscillator_by_runge_kutta(y: Array) -> Array:
    def slope(y: Array) -> Array:
        return jnp.stack([y[1], -y[0] - 0.1 * y[1]])

    def step(y: Array, _: None) -> tuple[Array, Array]:
        h = 0.1
        a = slope(y)
        b = slope(y + h / 2 * a)
        c = slope(y + h / 2 * b)
        d = slope(y + h * c)
        y = y + h / 6 * (a + 2 * b + 2 * c + d)
        return y, y

    return lax.scan(step, y, None, length=50)[1]


@of("f32[3]")
def lorenz_by_euler(y: Array) -> Array:
    def step(y: Array, _: None) -> tuple[Array, Array]:
        slope = jnp.stack(
            [10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]]
        )
        y = y + 0.01 * slope
        return y, y

    return lax.scan(step, y, None, length=100)[1]


@of("f32[2]:positive")
def predator_and_prey(y: Array) -> Array:
    def slope(y: Array, t: Array) -> Array:
        return jnp.stack([y[0] * (1.1 - 0.4 * y[1]), y[1] * (0.1 * y[0] - 0.4)])

    return odeint(slope, y, jnp.linspace(0.0, 1.0, 5))


@of("f32[24,3]", "f32[24,3]:hundredths", "f32[24]:positive")
def gravitation_of_bodies(x: Array, v: Array, m: Array) -> tuple[Array, Array]:
    def step(_: int, state: tuple[Array, Array]) -> tuple[Array, Array]:
        x, v = state
        d = x[None] - x[:, None]
        r = (d * d).sum(-1) + 0.05
        a = (d * (m / (r * jnp.sqrt(r)))[..., None]).sum(1)
        v = v + 0.001 * a
        return x + 0.001 * v, v

    return lax.fori_loop(0, 4, step, (x, v))


@of("f32[16,3]:scaled2")
def lennard_jones_energy(x: Array) -> Array:
    d = x[:, None] - x[None]
    r2 = (d * d).sum(-1) + jnp.eye(16) * 1e6
    s = 1 / r2**3
    return 2 * (s * s - s).sum()


@of("f32[10,3]:scaled3")
def forces_by_gradient(x: Array) -> Array:
    def energy(x: Array) -> Array:
        d = x[:, None] - x[None] + 1e-3
        return (1 / jnp.sqrt((d * d).sum(-1) + jnp.eye(10))).sum() / 2

    return -jax.grad(energy)(x)


@of("f32[32,32]")
def heat_equation(u: Array) -> Array:
    def step(_: int, u: Array) -> Array:
        around = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1)
        return u + 0.1 * (around - 4 * u)

    return lax.fori_loop(0, 10, step, u)


@of("f32[64]", "f32[64]")
def wave_equation(u: Array, v: Array) -> Array:
    def step(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
        u, before = state
        inner = 2 * u[1:-1] - before[1:-1] + 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])
        after = jnp.pad(inner, 1)
        return (after, u), after.max()

    return lax.scan(step, (u, v), None, length=20)[1]


@of("s32[16,16]:below2")
def game_of_life(x: Array) -> Array:
    def step(_: int, x: Array) -> Array:
        turns = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)]
        n = sum(jnp.roll(x, turn, (0, 1)) for turn in turns)
        return ((n == 3) | ((x == 1) & (n == 2))).astype(jnp.int32)

    return lax.fori_loop(0, 8, step, x)


@of("f32[34]", "f32[34]:positive")
def burgers_equation(u: Array, viscosity: Array) -> Array:
    def step(_: int, u: Array) -> Array:
        left, right = jnp.roll(u, 1), jnp.roll(u, -1)
        return u - 0.01 * u * (right - left) / 2 + 0.01 * viscosity * (right - 2 * u + left)

    return lax.fori_loop(0, 12, step, u)


@of("f32[40,3]")
def pairwise_distances(x: Array) -> tuple[Array, Array]:
    squares = (x * x).sum(1)
    by_product = squares[:, None] + squares[None] - 2 * x @ x.T
    d = x[:, None] - x[None]
    return jnp.sqrt(jnp.maximum(by_product, 0)), jnp.sqrt((d * d).sum(-1))


@of("f32[8]:positive", "f32[8]:positive", "f32[8]:positive")
def option_prices(spot: Array, strike: Array, years: Array) -> Array:
    sigma, rate = 0.2, 0.03
    root = sigma * jnp.sqrt(years)
    d = (jnp.log(spot / strike) + (rate + sigma**2 / 2) * years) / root
    cdf = jax.scipy.stats.norm.cdf
    return spot * cdf(d) - strike * jnp.exp(-rate * years) * cdf(d - root)


@of("f32[10]:positive", "f32[10]:positive")
def option_greeks(spot: Array, years: Array) -> tuple[Array, Array]:
    def price(spot: Array, years: Array) -> Array:
        root = 0.3 * jnp.sqrt(years)
        d = (jnp.log(spot) + 0.05 * years) / root
        cdf = jax.scipy.stats.norm.cdf
        return spot * cdf(d) - cdf(d - root)

    return jax.vmap(jax.grad(price))(spot, years), jax.vmap(jax.grad(jax.grad(price)))(spot, years)


@of("f32[20]:angles", "f32[20]:angles", "f32[20]:angles")
def rotations(a: Array, b: Array, c: Array) -> Array:
    def around_z(t: Array) -> Array:
        s, c = jnp.sin(t), jnp.cos(t)
        return jnp.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])

    def around_x(t: Array) -> Array:
        s, c = jnp.sin(t), jnp.cos(t)
        return jnp.array([[1.0, 0, 0], [0, c, -s], [0, s, c]])

    return jax.vmap(lambda a, b, c: around_z(a) @ around_x(b) @ around_z(c))(a, b, c)


@of("f32[30]:unit", "f32[30]:unit", "f32[30]:angles", "f32[30]:angles")
def great_circles(a: Array, b: Array, c: Array, d: Array) -> Array:
    h = jnp.sin((a - b) / 2) ** 2 + jnp.cos(a) * jnp.cos(b) * jnp.sin((c - d) / 2) ** 2
    return 2 * 6371 * jnp.arcsin(jnp.sqrt(h))


@of("f32[64]", "f32[64]:fraction", "f32[]:fraction")
def resampled_particles(x: Array, w: Array, u: Array) -> tuple[Array, Array]:
    share = w / w.sum()
    places = jnp.searchsorted(jnp.cumsum(share), (u + jnp.arange(64)) / 64)
    return x[jnp.minimum(places, 63)], 1 / jnp.sum(share * share)


@of("f32[12]:ascending", "f32[12]", "f32[40]:scaled2")
def hermite_spline(xs: Array, ys: Array, x: Array) -> Array:
    slopes = jnp.gradient(ys, 1.0)
    i = jnp.clip(jnp.searchsorted(xs, x) - 1, 0, 10)
    step = xs[i + 1] - xs[i]
    t = (x - xs[i]) / step
    values = (1 + 2 * t) * (1 - t) ** 2 * ys[i] + t * t * (3 - 2 * t) * ys[i + 1]
    return values + step * t * (t - 1) * ((t - 1) * slopes[i] + t * slopes[i + 1])


@of("f32[2]", "f32[]:fraction")
def pendulum_by_adaptive_steps(y: Array, end: Array) -> tuple[Array, ...]:
    State = tuple[Array, Array, Array, Array]

    def slope(y: Array) -> Array:
        return jnp.stack([y[1], -jnp.sin(y[0])])

    def is_open(state: State) -> Array:
        return (state[0] < end) & (state[3] < 60)

    def step(state: State) -> State:
        t, h, y, n = state
        first = slope(y)
        second = slope(y + h * first)
        error = jnp.max(jnp.abs(h * (second - first) / 2)) + 1e-7
        is_good = error < 1e-3
        t = jnp.where(is_good, t + h, t)
        y = jnp.where(is_good, y + h * (first + second) / 2, y)
        h = h * jnp.clip(0.9 * jnp.sqrt(1e-3 / error), 0.2, 5.0)
        return t, jnp.minimum(h, end - t + 1e-6), y, n + 1

    zero = jnp.zeros((), y.dtype)
    return lax.while_loop(is_open, step, (zero, zero + 0.1, y, jnp.asarray(0)))
