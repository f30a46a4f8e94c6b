"""Special functions with gradients, statistics and interpolation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, random
from jax.scipy import special, stats
from jax.scipy.ndimage import map_coordinates

from programs.function import of


@of("f32[20]:positive")
def gammas_and_gradients(x: Array) -> object:
    slope = jax.vmap(jax.grad(special.gammaln))(x)
    return special.gammaln(x), slope, special.digamma(x), special.polygamma(1, x), special.gamma(x)


@of("f32[20]")
def errors_and_gradients(x: Array) -> object:
    fs = (special.erf, special.erfc, special.ndtr, special.log_ndtr)
    return [jax.vmap(jax.value_and_grad(f))(x) for f in fs]


@of("f32[16]:fraction")
def quantiles_and_gradients(p: Array) -> object:
    fs = (special.ndtri, special.logit, lambda p: special.erfinv(2 * p - 1), stats.logistic.ppf)
    return [jax.vmap(jax.value_and_grad(f))(p) for f in fs]


@of("f32[12]:positive", "f32[12]:positive")
def incomplete_gammas_and_gradients(a: Array, x: Array) -> object:
    return (
        special.gammainc(a, x),
        special.gammaincc(a, x),
        jax.grad(lambda x: special.gammainc(a, x).sum())(x),
    )


@of("f32[8]:positive", "f32[8]:positive", "f32[8]:fraction")
def betas_and_gradients(a: Array, b: Array, x: Array) -> object:
    slope = jax.grad(lambda x: special.betainc(a, b, x).sum())(x)
    return (
        special.betainc(a, b, x),
        slope,
        special.betaln(a, b),
        jax.grad(lambda a: special.betaln(a, b).sum())(a),
    )


@of("f32[20]")
def bessels_and_gradients(x: Array) -> object:
    fs = (special.i0e, special.i1e, special.i0)
    return [jax.vmap(jax.value_and_grad(f))(x) for f in fs]


@of("f32[15]:positive")
def entropies_and_logs(x: Array) -> object:
    y = x[::-1]
    return (
        special.entr(x),
        special.rel_entr(x, y),
        special.kl_div(x, y),
        special.xlogy(x, y),
        special.xlog1py(x, y),
        jax.grad(lambda x: special.xlogy(x, y).sum())(x),
    )


@of("f32[10]:positive", "f32[10]:positive")
def densities_with_gradients(x: Array, a: Array) -> object:
    fs = (
        lambda x: stats.gamma.logpdf(x, a).sum(),
        lambda x: stats.expon.logpdf(x, scale=a).sum(),
        lambda x: stats.t.logpdf(x, a + 1).sum(),
        lambda x: stats.laplace.logpdf(x, a).sum(),
        lambda x: stats.pareto.logpdf(x + 1, a).sum(),
        lambda x: stats.chi2.logpdf(x, a + 1).sum(),
        lambda x: stats.cauchy.logpdf(x, a).sum(),
    )
    return [jax.value_and_grad(f)(x) for f in fs]


@of("f32[12]", "f32[12]:positive")
def distribution_functions(x: Array, a: Array) -> object:
    return (
        stats.norm.cdf(x, 0.5, a),
        stats.norm.sf(x),
        stats.norm.logcdf(x),
        stats.gamma.cdf(a, 2.0),
        stats.logistic.cdf(x),
        stats.cauchy.cdf(x),
        stats.laplace.cdf(x),
        stats.poisson.cdf(jnp.floor(a * 3), a),
    )


@of("s32[10]:below8", "f32[10]:positive", "f32[10]:fraction")
def masses_of_counts(k: Array, rate: Array, p: Array) -> object:
    return (
        stats.poisson.logpmf(k, rate),
        stats.binom.logpmf(k, 10, p),
        stats.nbinom.logpmf(k, 3.0, p),
        stats.geom.logpmf(k + 1, p),
        stats.bernoulli.logpmf(k % 2, p),
        jax.grad(lambda r: stats.poisson.logpmf(k, r).sum())(rate),
    )


@of("f32[60]", "f32[60]")
def moments_and_correlations(x: Array, y: Array) -> object:
    d = (x - x.mean()) / x.std()
    slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    return (
        (d**3).mean(),
        (d**4).mean() - 3,
        jnp.corrcoef(x, y),
        jnp.cov(x, y),
        slope,
        jnp.var(x, ddof=1),
    )


@of("f32[5,31]")
def quantiles_and_robust_scales(x: Array) -> object:
    median = jnp.median(x, 1, keepdims=True)
    mad = jnp.median(jnp.abs(x - median), 1)
    q = jnp.quantile(x, jnp.array([0.1, 0.5, 0.9]), axis=1)
    return (
        mad,
        q,
        jnp.percentile(x, 33.0, method="nearest"),
        jnp.ptp(x, 1),
        stats.rankdata(x, axis=1),
    )


@of("f32[40]", "f32[8]")
def kernel_density_and_its_mode(x: Array, at: Array) -> object:
    kde = stats.gaussian_kde(x)
    return kde(at), kde.logpdf(at), at[jnp.argmax(kde(at))]


@of("f32[10]:ascending", "f32[10]", "f32[25]")
def linear_interpolation_and_gradients(xs: Array, ys: Array, x: Array) -> object:
    def total(ys: Array, x: Array) -> Array:
        return (jnp.interp(x, xs, ys, left=0.0, right=0.0) ** 2).sum()

    return jnp.interp(x, xs, ys), jax.grad(total, (0, 1))(ys, x), jnp.interp(x, xs, ys, period=2.0)


@of("f32[6]:ascending", "f32[6]", "f32[12]:unit")
def cubic_spline_by_a_linear_system(xs: Array, ys: Array, x: Array) -> Array:
    h = jnp.diff(xs)
    s = jnp.diff(ys) / h
    a = (
        jnp.eye(6)
        .at[1:-1, 1:-1]
        .set(jnp.diag(2 * (h[1:] + h[:-1])) + jnp.diag(h[1:-1], 1) + jnp.diag(h[1:-1], -1))
    )
    m = jnp.linalg.solve(a, jnp.pad(6 * jnp.diff(s), 1))
    i = jnp.clip(jnp.searchsorted(xs, x) - 1, 0, 4)
    d, e = x - xs[i], xs[i + 1] - x
    curve = (m[i] * e**3 + m[i + 1] * d**3) / (6 * h[i])
    return (
        curve + (ys[i] / h[i] - m[i] * h[i] / 6) * e + (ys[i + 1] / h[i] - m[i + 1] * h[i] / 6) * d
    )


@of("f32[8,9]", "f32[2,12]:positive")
def samples_of_an_image_by_order_and_mode(image: Array, at: Array) -> object:
    at = at * 2 - 1
    return [
        map_coordinates(image, list(at), order=o, mode=m)
        for o, m in ((0, "nearest"), (1, "nearest"), (1, "wrap"), (1, "reflect"), (1, "constant"))
    ]


@of("f32[6,6,2]", "f32[6,6]")
def resized_by_each_method(x: Array, y: Array) -> object:
    return (
        jax.image.resize(x, (9, 4, 2), "linear"),
        jax.image.resize(y, (11, 11), "cubic"),
        jax.image.resize(y, (3, 4), "nearest"),
        jax.image.resize(y, (8, 3), "lanczos3"),
    )


@of("u32[2]", "f32[5]:positive")
def draws_with_gradients_through_them(key: Array, a: Array) -> object:
    k = random.split(random.wrap_key_data(key), 3)

    def total(a: Array) -> Array:
        return (random.gamma(k[0], a) + a * random.normal(k[1], (5,))).sum()

    return jax.value_and_grad(total)(a), random.dirichlet(k[2], a)


@of("f32[20]", "f32[20]", "u32[2]")
def permutation_test_of_means(x: Array, y: Array, key: Array) -> object:
    both = jnp.concatenate([x, y])

    def one(k: Array) -> Array:
        z = random.permutation(k, both)
        return z[:20].mean() - z[20:].mean()

    draws = jax.vmap(one)(random.split(random.wrap_key_data(key), 12))
    return draws, (jnp.abs(draws) >= jnp.abs(x.mean() - y.mean())).mean()
