"""Special functions and densities."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.special as special
import jax.scipy.stats as stats
from jax import Array

from programs.function import of


@of("f32[500]:positive")
def log_gamma_and_digamma(x: Array) -> tuple[Array, Array]:
    return special.gammaln(x), special.digamma(x)


@of("f32[500]:scaled3")
def log_gamma_of_negatives(x: Array) -> Array:
    return special.gammaln(x)


@of("f32[200]:positive")
def polygamma_and_zeta(x: Array) -> tuple[Array, Array]:
    return special.polygamma(1, x), special.zeta(x + 1.5, 2.0)


@of("f32[500]:unit")
def error_functions(x: Array) -> tuple[Array, ...]:
    return special.erf(x), special.erfc(x * 4), special.erfinv(x)


@of("f32[500]:fraction")
def normal_quantiles(p: Array) -> tuple[Array, Array]:
    return special.ndtri(p), stats.norm.ppf(p)


@of("f32[500]:scaled4")
def normal_distribution(x: Array) -> tuple[Array, ...]:
    return special.ndtr(x), special.log_ndtr(x), stats.norm.logpdf(x), stats.norm.logsf(x)


@of("f32[300]:scaled5")
def bessel_functions(x: Array) -> tuple[Array, ...]:
    return special.i0(x), special.i0e(x), special.i1(x), special.i1e(x)


@of("f32[60]:positive", "f32[60]:positive", "f32[60]:fraction")
def incomplete_beta(a: Array, b: Array, x: Array) -> Array:
    return special.betainc(a, b, x)


@of("f32[60]:positive", "f32[60]:positive")
def incomplete_gamma(a: Array, x: Array) -> tuple[Array, Array]:
    return special.gammainc(a, x), special.gammaincc(a, x)


@of("f32[200]:positive", "f32[200]:positive")
def beta_and_log_beta(a: Array, b: Array) -> tuple[Array, Array]:
    return special.beta(a, b), special.betaln(a, b)


@of("f32[200]:fraction", "f32[200]:fraction")
def entropies(p: Array, q: Array) -> tuple[Array, ...]:
    return special.entr(p), special.rel_entr(p, q), special.xlogy(p, q), special.xlog1py(p, q)


@of("f32[200]:fraction")
def logits_and_back(p: Array) -> tuple[Array, Array]:
    x = special.logit(p)
    return x, special.expit(x)


@of("f32[100]:positive")
def gradient_of_log_gamma(x: Array) -> Array:
    return jax.vmap(jax.grad(special.gammaln))(x)


@of("f32[40]:positive", "f32[40]:fraction")
def gradient_of_incomplete_gamma(a: Array, x: Array) -> Array:
    return jax.vmap(jax.grad(special.gammainc, argnums=1))(a, x)


@of("f32[100]", "f32[100]:positive")
def densities(x: Array, a: Array) -> tuple[Array, ...]:
    return (
        stats.t.logpdf(x, a),
        stats.gamma.logpdf(a, 2.0),
        stats.beta.logpdf(jax.nn.sigmoid(x), a, 2.0),
        stats.cauchy.pdf(x),
        stats.laplace.cdf(x),
    )


@of("f32[100]:positive")
def exponential_integral(x: Array) -> tuple[Array, Array]:
    return special.exp1(x), special.expi(x)


@of("s32[50]:below20", "f32[50]:positive")
def poisson_and_binomial_masses(k: Array, rate: Array) -> tuple[Array, Array]:
    p = rate / 4.1
    return stats.poisson.logpmf(k, rate), stats.binom.logpmf(k, 20, p)


@of("f64[100]:positive")
def wide_special_functions(x: Array) -> tuple[Array, ...]:
    return special.gammaln(x), special.erf(x), special.erfc(x), special.digamma(x)


@of("f32[100]:unit")
def sinc_and_spherical(x: Array) -> tuple[Array, ...]:
    return jnp.sinc(x), jnp.i0(x), special.factorial(jnp.round(x * 5 + 5)), jnp.exp2(x)


@of("f32[20]:fraction", "f32[20]:angles")
def spherical_harmonics(theta: Array, phi: Array) -> Array:
    degree, order = jnp.full(20, 3), jnp.full(20, 2)
    return special.sph_harm_y(degree, order, theta, phi, n_max=3)


@of("f32[200]:unit", "f32[200]:positive")
def inverse_error_function_and_gammas(x: Array, a: Array) -> tuple[Array, ...]:
    size = jnp.abs(x)
    bessel = special.i0e(x * 9), special.i1e(x * 9)
    return special.erfinv(x), special.gammainc(a, size), special.gammaincc(a, size), *bessel
