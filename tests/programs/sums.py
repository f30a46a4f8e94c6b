"""Sums, products and statistics of long arrays."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from programs.function import of


@of("f32[2000000]:fraction")
def sum_of_two_million(x: Array) -> Array:
    return x.sum()


@of("f32[2000000]")
def sum_of_two_million_normals(x: Array) -> Array:
    return x.sum()


@of("f32[2000000]")
def mean_and_deviation_of_two_million(x: Array) -> tuple[Array, Array]:
    return x.mean(), x.std()


@of("f32[1000000]", "f32[1000000]")
def dot_of_a_million(x: Array, y: Array) -> Array:
    return jnp.dot(x, y)


@of("f32[2000,1000]")
def sums_by_row_and_column(x: Array) -> tuple[Array, Array]:
    return x.sum(0), x.sum(1)


@of("f32[1000000]:scaled100")
def log_sum_exp_of_a_million(x: Array) -> Array:
    return jnp.log(jnp.exp(x - x.max()).sum()) + x.max()


@of("f32[100000]")
def cumulative_sum(x: Array) -> Array:
    return jnp.cumsum(x)


@of("f32[1000]:fraction")
def short_cumulative_sum(x: Array) -> Array:
    return jnp.cumsum(x)


@of("f32[20]:positive")
def cumulative_products(x: Array) -> Array:
    return jnp.cumprod(x)


@of("f32[300000]:fraction")
def norms(x: Array) -> tuple[Array, ...]:
    return jnp.linalg.norm(x), jnp.linalg.norm(x, 1), jnp.linalg.norm(x, jnp.inf)


@of("f32[5000,20]")
def covariance_matrix(x: Array) -> tuple[Array, Array]:
    return jnp.cov(x.T), jnp.corrcoef(x.T)


@of("f32[100000]")
def moments(x: Array) -> tuple[Array, ...]:
    z = (x - x.mean()) / x.std()
    return (z**2).mean(), (z**3).mean(), (z**4).mean()


@of("f32[200,200]", "f32[200,200]")
def matmul(x: Array, y: Array) -> Array:
    return x @ y


@of("f32[8,24,24]", "f32[8,24,24]")
def contractions(x: Array, y: Array) -> tuple[Array, ...]:
    return (
        jnp.einsum("bij,bjk->bik", x, y),
        jnp.einsum("bij,bij->b", x, y),
        jnp.einsum("bij,bij->ij", x, y),
        jnp.einsum("bii->b", x),
    )


@of("f32[1000000]")
def compensated_sum(x: Array) -> Array:
    parts = x.reshape(1000, 1000)

    def step(state: tuple[Array, Array], row: Array) -> tuple[tuple[Array, Array], None]:
        total, lost = state
        y = row - lost
        t = total + y
        return (t, (t - total) - y), None

    zero = jnp.zeros(1000)
    return lax.scan(step, (zero, zero), parts)[0][0].sum()


@of("f64[200000]")
def wide_sums(x: Array) -> tuple[Array, ...]:
    return x.sum(), x.mean(), x.var(), jnp.cumsum(x[:1000])


@of("f32[50,30]:fraction")
def products_and_geometric_means(x: Array) -> tuple[Array, Array]:
    return x.prod(1), jnp.exp(jnp.log(x).mean(1))


@of("f32[5,40]:scaled3")
def cumulative_log_sum_exp(x: Array) -> tuple[Array, ...]:
    return lax.cumlogsumexp(x, axis=1), lax.cummax(x, axis=1), lax.cummin(x, axis=1, reverse=True)


@of("f32[40]", "f32[40]")
def products_and_sums_with_their_errors(a: Array, b: Array) -> tuple[Array, ...]:
    """Dekker's product and Knuth's sum, of which compilers may take the errors for zeros."""

    def split(x: Array) -> tuple[Array, Array]:
        high = x * 4097.0 - (x * 4097.0 - x)
        return high, x - high

    product, total = a * b, a + b
    (a_high, a_low), (b_high, b_low) = split(a), split(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    rest = total - a
    return product, error, total, (a - (total - rest)) + (b - rest)
