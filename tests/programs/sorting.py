"""Sorts, top k, arguments of maxima, medians and quantiles."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of


@of("f32[20,50]")
def sorted_rows(x: Array) -> Array:
    return jnp.sort(x)


@of("f32[500]")
def descending_order(x: Array) -> tuple[Array, Array]:
    order = jnp.argsort(-x)
    return order, x[order]


@of("s32[500]:below20")
def stable_order_of_equal_keys(x: Array) -> Array:
    return jnp.argsort(x, stable=True)


@of("f32[8,100]")
def top_k(x: Array) -> tuple[Array, Array]:
    return tuple(lax.top_k(x, 5))


@of("f32[8,40]:scaled3")
def top_k_of_softmax(x: Array) -> tuple[Array, Array]:
    return tuple(lax.top_k(jax.nn.softmax(x), 3))


@of("f32[16,64]", "f32[64,10]")
def predicted_classes(x: Array, w: Array) -> Array:
    return (x @ w).argmax(1)


@of("f32[7,33]")
def medians(x: Array) -> tuple[Array, Array]:
    return jnp.median(x, axis=1), jnp.median(x)


@of("f32[6,101]")
def quantiles(x: Array) -> Array:
    return jnp.quantile(x, jnp.array([0.05, 0.5, 0.9]), axis=1)


@of("f32[200]")
def percentile_range(x: Array) -> Array:
    return jnp.percentile(x, 75) - jnp.percentile(x, 25)


@of("f32[100]", "s32[100]:below7")
def lexicographic_order(x: Array, y: Array) -> Array:
    return jnp.lexsort((x, y))


@of("s32[200]:below30")
def unique_with_counts(x: Array) -> tuple[Array, Array]:
    return jnp.unique(x, size=30, fill_value=-1, return_counts=True)


@of("f32[50]:ascending", "f32[30]")
def places_in_a_sorted_array(x: Array, y: Array) -> tuple[Array, Array]:
    return jnp.searchsorted(x, y), jnp.digitize(y, x)


@of("f32[300]")
def histogram_of_normals(x: Array) -> tuple[Array, Array]:
    return jnp.histogram(x, bins=12)


@of("f32[60]", "f32[60]")
def rank_correlation(x: Array, y: Array) -> Array:
    a, b = jnp.argsort(jnp.argsort(x)), jnp.argsort(jnp.argsort(y))
    return jnp.corrcoef(a.astype(jnp.float32), b.astype(jnp.float32))[0, 1]


@of("f32[40]")
def gradient_of_sorted_weights(x: Array) -> Array:
    return jax.grad(lambda x: (jnp.sort(x) * jnp.arange(40)).sum())(x)


@of("f32[10,30]:scaled3")
def nucleus(logits: Array) -> Array:
    ordered = jnp.sort(jax.nn.softmax(logits))[:, ::-1]
    return jnp.cumsum(ordered, axis=1) < 0.9


@of("f32[12,30]:positive", "f32[12,30]:positive")
def running_extremes(x: Array, y: Array) -> tuple[Array, Array]:
    return lax.cummax(x, 1), lax.cummin(x * y, 1)


@of("f32[8,40]")
def masked_extremes(x: Array) -> tuple[Array, ...]:
    y = jnp.where(x > 0, x, jnp.nan)
    return jnp.nanmax(y, 1), jnp.nanargmin(y, 1), jnp.nanmean(y, 1), jnp.nanmedian(y, 1)


@of("f32[16,8]")
def bitonic_network(x: Array) -> Array:
    places = jnp.arange(8)
    for size in (2, 4, 8):
        for apart in (4, 2, 1):
            if apart < size:
                other = places ^ apart
                takes_less = ((places & size) == 0) == (places < other)
                y = x[:, other]
                x = jnp.where(takes_less, jnp.minimum(x, y), jnp.maximum(x, y))
    return x


@of("f32[8,30]")
def gradient_of_top_k(x: Array) -> tuple[Array, Array]:
    def loss(x: Array) -> tuple[Array, Array]:
        values, places = lax.top_k(x, 4)
        return jnp.sum(jax.nn.softmax(values) * jnp.arange(4)), places

    return jax.grad(loss, has_aux=True)(x)
