"""Segments, gathers with modes, scatters, sorts with keys, slices in loops."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of


@of("f32[40,3]", "s32[40]:below7")
def sums_means_and_extremes_of_segments(x: Array, ids: Array) -> object:
    total = jax.ops.segment_sum(x, ids, 7)
    count = jax.ops.segment_sum(jnp.ones(40), ids, 7)
    top, low = jax.ops.segment_max(x, ids, 7), jax.ops.segment_min(x, ids, 7)
    return total, total / jnp.maximum(count, 1)[:, None], top, low, jax.ops.segment_prod(x, ids, 7)


@of("bf16[30,4]", "s32[30]:below5")
def segments_of_bf16_and_their_softmax(x: Array, ids: Array) -> object:
    top = jax.ops.segment_max(x, ids, 5)
    e = jnp.exp(x - top[ids])
    return e / jax.ops.segment_sum(e, ids, 5)[ids], jax.ops.segment_sum(x, ids, 5)


@of("f32[20,4]", "s32[12]:below30", "f32[12,4]")
def gathers_by_each_mode(x: Array, i: Array, up: Array) -> object:
    i = i - 5
    clipped = x.at[i].get(mode="clip")
    filled = x.at[i].get(mode="fill", fill_value=jnp.nan)
    wrapped = jnp.take(x, i, 0, mode="wrap")
    back = jax.vjp(lambda x: x.at[i].get(mode="fill", fill_value=0), x)[1](up)
    return clipped, filled, wrapped, jnp.take(x, i, 0, mode="clip"), back


@of("f32[10,3]", "s32[15]:below14", "f32[15,3]")
def scatters_by_each_mode(x: Array, i: Array, u: Array) -> object:
    i = i - 2
    return (
        x.at[i].add(u, mode="drop"),
        x.at[i].max(u, mode="clip"),
        x.at[i].min(u),
        x.at[i].mul(1 + u / 4, mode="drop"),
        x.at[i, 1].add(u[:, 0]),
    )


@of("f16[8,6]", "s32[20]:below8", "s32[20]:below6", "f16[20]")
def additions_of_f16_at_pairs(x: Array, i: Array, j: Array, u: Array) -> object:
    def loss(u: Array) -> Array:
        return (x.at[i, j].add(u) ** 2).astype(jnp.float32).sum()

    return x.at[i, j].add(u), jax.grad(loss)(u)


@of("bf16[12,8]", "s32[4,5]:below12", "bf16[4,8]")
def mean_of_embeddings_and_gradient(table: Array, ids: Array, up: Array) -> object:
    return jax.vjp(lambda t: t[ids].mean(1), table)[1](up)


@of("f32[6,10]", "s32[6,10]:below4")
def sorts_by_two_keys(x: Array, keys: Array) -> object:
    a, b, order = lax.sort((keys, x, lax.broadcasted_iota(jnp.int32, x.shape, 1)), num_keys=2)
    c, d = lax.sort((keys, x), num_keys=1, is_stable=True)
    return a, b, order, c, d


@of("f32[30]", "s32[30]:below5", "f32[30]")
def order_by_several_columns(a: Array, b: Array, c: Array) -> object:
    order = jnp.lexsort((a, b))
    return order, c[order], jnp.argsort(b, descending=True), jnp.argsort(-jnp.abs(a), stable=True)


@of("f32[5,12]", "f32[5,12]")
def gradient_of_sort_and_of_median(x: Array, up: Array) -> object:
    return jax.vjp(lambda x: jnp.sort(x, 1), x)[1](up), jax.grad(lambda x: jnp.median(x, 1).sum())(
        x
    )


@of("bf16[4,16]", "f16[3,20]")
def top_k_of_narrow_types(x: Array, y: Array) -> object:
    return lax.top_k(x, 5), lax.top_k(jnp.abs(y), 3), lax.top_k(-x, 1), jnp.argsort(y, 1)


@of("f32[24]", "s32[]:below30")
def slices_that_slide_in_a_loop(x: Array, start: Array) -> object:
    def step(i: int, state: tuple[Array, Array]) -> tuple[Array, Array]:
        total, x = state
        piece = lax.dynamic_slice(x, (start + i - 4,), (6,))
        return total + piece, lax.dynamic_update_slice(x, piece * 0.5, (i * 3,))

    return lax.fori_loop(0, 8, step, (jnp.zeros(6), x))


@of("f32[7,9]", "s32[2]:below8")
def blocks_moved_in_a_scan(x: Array, at: Array) -> Array:
    def step(x: Array, i: Array) -> tuple[Array, Array]:
        block = lax.dynamic_slice(x, (at[0] - i, at[1]), (3, 4))
        return lax.dynamic_update_slice(x, block.T[:3, :3] + 1, (i, at[1] - i)), block.sum()

    return lax.scan(step, x, jnp.arange(5))[1]


@of("f32[4,20]", "s32[4]:below17")
def window_of_each_row(x: Array, start: Array) -> object:
    pieces = jax.vmap(lambda row, s: lax.dynamic_slice_in_dim(row, s, 6))(x, start)
    written = jax.vmap(lambda row, s: lax.dynamic_update_slice(row, jnp.zeros(4), (s,)))(x, start)
    return pieces, written


@of("s32[50]:below9", "f32[50]")
def histogram_groups_and_firsts(keys: Array, x: Array) -> object:
    counts = jnp.bincount(keys, x, length=9)
    values, index, inverse = jnp.unique(
        keys, return_index=True, return_inverse=True, size=9, fill_value=-1
    )
    return counts, values, index, inverse, jnp.searchsorted(jnp.sort(x), x[:5], side="right")


@of("f32[12]", "s32[12]:below2")
def compaction_by_a_prefix_sum(x: Array, keep: Array) -> object:
    place = jnp.cumsum(keep) - keep
    out = jnp.zeros(12).at[jnp.where(keep == 1, place, 12)].set(x, mode="drop")
    return out, jnp.nonzero(keep, size=12, fill_value=-1)[0], keep.sum()


@of("f32[5,6,7]", "s32[4]:below5", "s32[4]:below7")
def mixed_indices_and_slices(x: Array, i: Array, k: Array) -> object:
    return x[i, :, k], x[i, ::2], x[:, None, 1, k], x[i[:, None], 2, k], x.at[i, :, k].set(0.0)


@of("f32[6,6]", "s32[6]:below6")
def permuted_rows_and_columns(x: Array, p: Array) -> object:
    return (
        x[p][:, p],
        jnp.take_along_axis(x, p[:, None], 1),
        jnp.put_along_axis(x, p[:, None], 9.0, 1, inplace=False),
    )


@of("f32[9,2]", "s32[14]:below9", "s32[14]:below9", "f32[2,2]")
def messages_with_degrees(x: Array, source: Array, target: Array, w: Array) -> object:
    def layer(w: Array) -> Array:
        degree = jnp.zeros(9).at[target].add(1.0) + 1
        norm = lax.rsqrt(degree[source] * degree[target])
        h = x @ w
        return (
            jnp.zeros_like(h).at[target].add(h[source] * norm[:, None]) + h / degree[:, None]
        ).sum()

    return jax.value_and_grad(layer)(w)
