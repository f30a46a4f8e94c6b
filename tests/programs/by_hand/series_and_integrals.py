"""Functions of mathematical physics, of JAX and by their series, fractions and integrals."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.scipy import special

from programs.function import of

State = tuple[Array, ...]


@of("f32[24]:positive", "f32[24]:positive", "f32[24]:fraction")
def incomplete_beta_and_its_slope(a: Array, b: Array, x: Array) -> State:
    slope = jax.vmap(jax.grad(lambda x, a, b: special.betainc(a, b, x)))(x, a, b)
    return special.betainc(a, b, x), slope


@of("f64[12]:positive", "f64[12]:positive")
def incomplete_gammas_of_f64(a: Array, x: Array) -> State:
    return special.gammainc(a, x), special.gammaincc(a, 3 * x)


@of("f32[20]:positive", "f32[20]:positive")
def hurwitz_zeta_and_polygammas(s: Array, q: Array) -> State:
    n = jnp.arange(20) % 4 + 1
    return special.zeta(1 + s, q), special.polygamma(n, q), special.digamma(q - 2)


@of("f32[40]:scaled8")
def scaled_bessel_functions_and_slopes(x: Array) -> State:
    e = jax.vmap(jax.grad(special.i0e))(x), jax.vmap(jax.grad(special.i1e))(x)
    return special.i0e(x), special.i1e(x), special.i1(x) / special.i0(x), *e


@of("f32[40]:unit", "f32[40]:fraction")
def inverses_of_error_function_and_normal(x: Array, p: Array) -> State:
    curve = jax.vmap(jax.grad(jax.grad(special.ndtri)))(p)
    return special.erfinv(x), special.ndtri(p), curve, special.erf(special.erfinv(x)) - x


@of("f32[24]:scaled6")
def tails_of_the_normal(x: Array) -> State:
    mills = jnp.exp(special.log_ndtr(x) + x * x / 2)
    return special.log_ndtr(x), jax.vmap(jax.grad(special.log_ndtr))(x), mills, special.ndtr(-x)


@of("f64[12]:positive")
def exponential_and_sine_integrals(x: Array) -> State:
    def term(k: int, state: State) -> State:
        total, power = state
        power = power * (-x * x) / ((2 * k) * (2 * k + 1))
        return total + power / (2 * k + 1), power

    si, _ = lax.fori_loop(1, 15, term, (x, x))
    return special.expi(x), si


@of("f32[20]:positive")
def dilogarithm_and_clausen(x: Array) -> State:
    k = jnp.arange(1.0, 40.0)
    return special.spence(x), (jnp.sin(k * x[:, None]) / k**2).sum(-1)


@of("f32[8]:positive", "f32[8]:positive", "f32[8]:unit")
def hypergeometric_series(a: Array, b: Array, z: Array) -> State:
    def term(carry: State, k: Array) -> tuple[State, None]:
        total, last = carry
        last = last * (a + k) / (b + k) * z / (k + 1)
        return (total + last, last), None

    (total, last), _ = lax.scan(term, (jnp.ones(8), jnp.ones(8)), jnp.arange(15.0))
    return total, last, special.hyp1f1(a, b, z)


@of("f32[20]:positive")
def product_logarithm_by_halley(x: Array) -> State:
    def step(state: State) -> State:
        w, n = state
        e = jnp.exp(w)
        f = w * e - x
        return w - f / (e * (w + 1) - (w + 2) * f / (2 * w + 2)), n + 1

    w, n = lax.while_loop(
        lambda s: jnp.any(jnp.abs(s[0] * jnp.exp(s[0]) - x) > 1e-5 * x) & (s[1] < 12),
        step,
        (jnp.log1p(x), jnp.int32(0)),
    )
    return w, n


@of("f64[10]:fraction", "f64[10]:positive", "f64[10]:positive")
def elliptic_integral_of_carlson(x: Array, y: Array, z: Array) -> Array:
    def step(_: int, v: State) -> State:
        x, y, z = v
        s = jnp.sqrt(x) * jnp.sqrt(y) + jnp.sqrt(y) * jnp.sqrt(z) + jnp.sqrt(z) * jnp.sqrt(x)
        return (x + s) / 4, (y + s) / 4, (z + s) / 4

    x, y, z = lax.fori_loop(0, 6, step, (x, y, z))
    m = (x + y + z) / 3
    a, b = 1 - x / m, 1 - y / m
    e2, e3 = a * b - (a + b) ** 2, -a * b * (a + b)
    return (1 - e2 / 10 + e3 / 14 + e2**2 / 24 - 3 * e2 * e3 / 44) / jnp.sqrt(m)


@of("f32[30]:scaled3", "f32[30]:positive")
def profiles_of_voigt(x: Array, y: Array) -> tuple[Array, Array]:
    """Humlíček's rational approximation of a convolution, in complex numbers."""
    t = y - 1j * x
    u = t * t
    far = t * 0.5641896 / (0.5 + u)
    near = t * (1.410474 + u * 0.5641896) / (0.75 + u * (3 + u))
    return jnp.where(jnp.abs(x) + y > 4, far.real, near.real), jnp.abs(near)


@of("f32[17]:unit")
def legendre_with_derivative(x: Array) -> tuple[Array, Array]:
    def value(x: Array) -> Array:
        def step(carry: State, k: Array) -> tuple[State, Array]:
            p, q = carry
            new = ((2 * k + 1) * x * p - k * q) / (k + 1)
            return (new, p), new

        return lax.scan(step, (x, jnp.ones_like(x)), jnp.arange(1.0, 8.0))[1]

    return value(x), jax.vmap(jax.jacfwd(value))(x)


@of("f32[12]", "f32[6]")
def series_of_hermite_functions(x: Array, c: Array) -> Array:
    basis = [jnp.exp(-x * x / 2) * jnp.pi**-0.25]
    basis.append(jnp.sqrt(2.0) * x * basis[0])
    for n in range(2, 6):
        basis.append(jnp.sqrt(2 / n) * x * basis[-1] - jnp.sqrt((n - 1) / n) * basis[-2])
    return c @ jnp.stack(basis)


@of("f32[16]:positive")
def tangent_by_a_continued_fraction(x: Array) -> tuple[Array, Array]:
    """Lentz's method, until nothing changes."""
    x = x / 4
    tiny = 1e-20

    def step(state: State) -> State:
        f, c, d, k, _ = state
        a = jnp.where(k == 1, x, -x * x)
        b = 2.0 * k - 1
        d = 1 / jnp.where(b + a * d == 0, tiny, b + a * d)
        c = jnp.where(b + a / c == 0, tiny, b + a / c)
        return f * c * d, c, d, k + 1, c * d

    start = jnp.full(16, tiny), jnp.full(16, tiny), jnp.zeros(16), jnp.int32(1), jnp.zeros(16)
    goes_on = lambda s: jnp.any(jnp.abs(s[4] - 1) > 1e-6) & (s[3] < 15)  # noqa: E731
    f, _, _, k, _ = lax.while_loop(goes_on, step, start)
    return f, k


@of("f64[16]:fraction")
def entropies_and_divergences(p: Array) -> State:
    q = p[::-1]
    return (
        special.entr(p),
        special.rel_entr(p, q),
        special.kl_div(p, q),
        special.xlog1py(p, -q),
        special.logit(p),
        jax.vmap(jax.grad(special.xlogy))(p, q),
    )


@of("f32[6,6]:definite", "f32[5]:positive")
def wishart_and_multivariate_gamma(x: Array, a: Array) -> tuple[Array, Array]:
    sign, det = jnp.linalg.slogdet(x)
    found = special.multigammaln(a + 3, 3)
    return found, sign * (0.5 * det - 0.5 * jnp.trace(x)) - special.multigammaln(4.0, 6)


@of("f32[30]")
def logarithms_next_to_zero_and_one(x: Array) -> State:
    y = -jnp.abs(x)
    one = jnp.where(y > -0.693, jnp.log(-jnp.expm1(y)), jnp.log1p(-jnp.exp(y)))
    return one, jnp.logaddexp2(x, -x), jnp.log1p(jnp.expm1(x)), jnp.sinc(x), jnp.expm1(x) / x


@of("f32[10]:positive")
def fresnel_integrals_by_gauss(x: Array) -> State:
    nodes = jnp.array([-0.90617985, -0.53846931, 0.0, 0.53846931, 0.90617985])
    weights = jnp.array([0.23692689, 0.47862867, 0.56888889, 0.47862867, 0.23692689])
    edges = jnp.linspace(0, 1, 9)
    t = (edges[:-1, None] + edges[1:, None]) / 2 + nodes / 16
    at = jnp.pi / 2 * (x[:, None, None] * t) ** 2
    return tuple(x * (weights * f(at)).sum((1, 2)) / 16 for f in (jnp.cos, jnp.sin))


@of("f32[12]:positive", "f32[12]:fraction")
def second_derivatives_of_gammas(a: Array, p: Array) -> State:
    f = lambda a, p: special.gammaln(a) + special.betaln(a, p + 1)  # noqa: E731
    hessian = jax.vmap(jax.hessian(f, (0, 1)))(a, p)
    return hessian[0][0], hessian[0][1], jax.vmap(jax.grad(special.digamma))(a)


@of("f32[8]:positive", "f32[8]:unit")
def owens_t_and_bivariate_normal(h: Array, a: Array) -> Array:
    nodes, weights = jnp.array([0.1252, 0.3678, 0.5873, 0.7699]), jnp.array([0.25, 0.23, 0.2, 0.16])
    x = a[:, None] * nodes
    inside = jnp.exp(-0.5 * h[:, None] ** 2 * (1 + x * x)) / (1 + x * x)
    return a * (inside @ weights) / (2 * jnp.pi)


@of("f32[6]:positive")
def bessel_by_backward_recurrence(x: Array) -> Array:
    found = special.bessel_jn(x, v=4, n_iter=20)
    return found / jnp.sqrt((found**2).sum(0))
