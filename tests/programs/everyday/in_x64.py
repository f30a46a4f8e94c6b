"""Functions with types of 64 bits."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.scipy import special, stats

from programs.function import of


@of("f64[30]")
def compensated_and_pairwise_sums(x: Array) -> object:
    def step(s: tuple[Array, Array], v: Array) -> tuple[tuple[Array, Array], None]:
        total, c = s
        y = v - c
        t = total + y
        return (t, (t - total) - y), None

    zero = jnp.zeros((), x.dtype)
    (total, _), _ = lax.scan(step, (zero, zero), x)
    return total, x.sum(), x.astype(jnp.float32).sum(), jnp.cumsum(x)


@of("f64[20]", "f64[20]")
def products_with_their_errors(a: Array, b: Array) -> object:
    def split(v: Array) -> tuple[Array, Array]:
        c = 134217729.0 * v
        high = c - (c - v)
        return high, v - high

    p = a * b
    (a1, a2), (b1, b2) = split(a), split(b)
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


@of("f64[5,5]:definite", "f64[5]")
def refined_solution_from_f32(a: Array, b: Array) -> object:
    x = jnp.linalg.solve(a.astype(jnp.float32), b.astype(jnp.float32)).astype(jnp.float64)
    for _ in range(2):
        r = b - a @ x
        x = x + jnp.linalg.solve(a.astype(jnp.float32), r.astype(jnp.float32)).astype(jnp.float64)
    return x, jnp.linalg.solve(a, b)


@of("f64[12]:positive")
def special_functions_with_gradients(x: Array) -> object:
    fs = (special.gammaln, special.digamma, special.erfc, special.log_ndtr, special.i0e)
    return [jax.vmap(jax.value_and_grad(f))(x) for f in fs]


@of("f64[15]", "f64[15]:positive")
def likelihood_and_fisher_information(x: Array, s: Array) -> object:
    def loss(p: Array) -> Array:
        return -stats.norm.logpdf(x, p[0], jnp.exp(p[1]) * s).sum()

    p = jnp.array([0.1, 0.2])
    return jax.grad(loss)(p), jnp.linalg.inv(jax.hessian(loss)(p))


@of("f64[3]:positive")
def robertson_by_rosenbrock(y: Array) -> Array:
    def f(y: Array) -> Array:
        a, b, c = 0.04 * y[0], 1e4 * y[1] * y[2] * 1e-2, 3e1 * y[1] ** 2
        return jnp.array([-a + b, a - b - c, c])

    def step(y: Array, _: None) -> tuple[Array, Array]:
        m = jnp.eye(3) - 0.05 * jax.jacfwd(f)(y)
        y = y + jnp.linalg.solve(m, 0.1 * f(y))
        return y, y

    return lax.scan(step, y, None, 8)[1]


@of("s64[20]:below4000000")
def days_to_dates(days: Array) -> object:
    z = days + 719468
    era = z // 146097
    doe = z - era * 146097
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    return (
        yoe + era * 400 + (mp >= 10),
        jnp.where(mp < 10, mp + 3, mp - 9),
        doy - (153 * mp + 2) // 5 + 1,
        (days + 4) % 7,
    )


@of("u64[10]", "u64[10]")
def products_of_128_bits(a: Array, b: Array) -> object:
    mask = jnp.uint64(0xFFFFFFFF)
    a0, a1, b0, b1 = a & mask, a >> 32, b & mask, b >> 32
    mid = a1 * b0 + ((a0 * b0) >> 32)
    low = a0 * b1 + (mid & mask)
    return (
        a1 * b1 + (mid >> 32) + (low >> 32),
        a * b,
        a.astype(jnp.float64),
        (a >> 1).astype(jnp.int64),
    )


@of("c128[16]")
def transforms_and_roots_of_unity(x: Array) -> object:
    k = jnp.arange(16)
    dft = jnp.exp(-2j * jnp.pi * k[:, None] * k / 16)
    return jnp.fft.fft(x), dft @ x, jnp.abs(jnp.fft.ifft(x)), jnp.exp(x), jnp.log(x), jnp.sqrt(x)


@of("f64[4,4]")
def eigenvalues_of_general_matrices(a: Array) -> object:
    w = jnp.linalg.eigvals(a)
    s = w.sum()
    return s, jnp.sort(jnp.abs(w)), jnp.linalg.det(a)


@of("f64[10]:positive", "f64[10]:positive", "f64[10]:fraction")
def options_with_greeks(s: Array, k: Array, v: Array) -> object:
    def price(s: Array, k: Array, v: Array) -> Array:
        d = (jnp.log(s / k) + (0.03 + v**2 / 2)) / v
        return s * stats.norm.cdf(d) - k * jnp.exp(-0.03) * stats.norm.cdf(d - v)

    v = v + 0.05
    delta = jax.vmap(jax.grad(price))(s, k, v)
    gamma = jax.vmap(jax.grad(jax.grad(price)))(s, k, v)
    return price(s, k, v), delta, gamma, jax.vmap(jax.grad(price, 2))(s, k, v)


@of("f64[6]", "f64[8]")
def quadrature_and_series(c: Array, x: Array) -> object:
    nodes, weights = np.polynomial.legendre.leggauss(10)
    half = x[:, None] / 2 * (nodes + 1)
    return (jnp.polyval(c, half) * weights).sum(1) * x / 2, jnp.polyval(jnp.polyint(c), x)


@of("f64[20]", "s64[20]:below20")
def wide_indices_and_conversions(x: Array, i: Array) -> object:
    return (
        x[i],
        x.at[i].add(1.5),
        (x * 1e12).astype(jnp.int64),
        i.astype(jnp.float32) / 3,
        x.astype(jnp.bfloat16),
    )


@of("f64[2]")
def chaos_followed_closely(y: Array) -> Array:
    def step(s: Array, _: None) -> tuple[Array, Array]:
        s = jnp.array([1 - 1.4 * s[0] ** 2 + s[1], 0.3 * s[0]])
        return s, s

    return lax.scan(step, jnp.tanh(y) / 3, None, 40)[1]


@of("f64[5,3]", "f64[5]")
def levenberg_steps_of_a_fit(x: Array, y: Array) -> object:
    def residual(p: Array) -> Array:
        return jnp.exp(-(p[0] ** 2)) * x[:, 0] + p[1] * x[:, 1] + jnp.sin(p[2]) * x[:, 2] - y

    def step(p: Array, _: None) -> tuple[Array, Array]:
        r, j = residual(p), jax.jacfwd(residual)(p)
        p = p - jnp.linalg.solve(j.T @ j + 0.1 * jnp.eye(3), j.T @ r)
        return p, r @ r

    return lax.scan(step, jnp.array([0.5, 0.1, 0.2]), None, 5)


@of("f64[20]:ascending", "f64[20]")
def integrals_by_trapezoid_and_simpson(x: Array, y: Array) -> object:
    even = y[:19]
    simpson = (even[0] + 4 * even[1::2].sum() + 2 * even[2:-1:2].sum() + even[-1]) / 3
    return (
        jnp.trapezoid(y, x),
        simpson,
        jnp.gradient(y),
        jnp.cumsum(jnp.diff(x) * (y[1:] + y[:-1]) / 2),
    )
