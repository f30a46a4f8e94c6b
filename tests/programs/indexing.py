"""Gather, scatter, segments, one-hot codes, embeddings, and their gradients."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of


@of("f32[100,16]", "s32[8,12]:below100")
def embedding(table: Array, tokens: Array) -> Array:
    return table[tokens]


@of("f32[100,16]", "s32[8,12]:below100", "f32[8,12,16]")
def gradient_of_embedding(table: Array, tokens: Array, cotangent: Array) -> Array:
    return jax.grad(lambda table: (table[tokens] * cotangent).sum())(table)


@of("f32[500,3]", "s32[500]:below25")
def segment_sums(x: Array, segments: Array) -> Array:
    return jax.ops.segment_sum(x, segments, num_segments=25)


@of("f32[500]", "s32[500]:below25")
def segment_extremes(x: Array, segments: Array) -> tuple[Array, Array, Array]:
    return (
        jax.ops.segment_max(x, segments, num_segments=25),
        jax.ops.segment_min(x, segments, num_segments=25),
        jax.ops.segment_prod(x, segments, num_segments=25),
    )


@of("f32[200]", "s32[200]:below10")
def softmax_of_segments(x: Array, segments: Array) -> Array:
    largest = jax.ops.segment_max(x, segments, num_segments=10)
    e = jnp.exp(x - largest[segments])
    return e / jax.ops.segment_sum(e, segments, num_segments=10)[segments]


@of("s32[64]:below10", "f32[10,5]")
def one_hot_times_matrix(labels: Array, w: Array) -> Array:
    return jax.nn.one_hot(labels, 10) @ w


@of("f32[40,8]", "s32[30]:below40", "s32[30]:below40", "f32[8,8]")
def graph_convolution(x: Array, senders: Array, receivers: Array, w: Array) -> Array:
    messages = (x @ w)[senders]
    return jax.nn.relu(jnp.zeros_like(x).at[receivers].add(messages))


@of("f32[20]", "s32[50]:below20", "f32[50]")
def additions_at_indices(x: Array, indices: Array, updates: Array) -> Array:
    return x.at[indices].add(updates)


@of("f32[20]", "s32[7]:below20", "f32[7]")
def multiplications_and_minima_at_indices(
    x: Array, indices: Array, updates: Array
) -> tuple[Array, ...]:
    return (
        x.at[indices].multiply(updates),
        x.at[indices].min(updates),
        x.at[indices].set(updates, mode="drop"),
    )


@of("f32[10,12]", "s32[]:below10", "s32[]:below12")
def dynamic_slices(x: Array, i: Array, j: Array) -> tuple[Array, Array]:
    taken = lax.dynamic_slice(x, (i, j), (3, 4))
    return taken, lax.dynamic_update_slice(x, taken * 2, (j, i))


@of("f32[16,20]", "s32[16]:below20")
def one_of_each_row(x: Array, columns: Array) -> Array:
    return jnp.take_along_axis(x, columns[:, None], axis=1)


@of("f32[16,20]", "s32[16]:below20")
def gradient_of_one_of_each_row(x: Array, columns: Array) -> Array:
    return jax.grad(lambda x: jnp.take_along_axis(x, columns[:, None], 1).sum() ** 2)(x)


@of("f32[6,8]", "pred[6,8]")
def masked_sums(x: Array, mask: Array) -> tuple[Array, Array]:
    return jnp.where(mask, x, 0).sum(1), jnp.mean(x, where=mask)


@of("s32[300]:below16", "f32[300]")
def weighted_bin_counts(x: Array, weights: Array) -> tuple[Array, Array]:
    return jnp.bincount(x, length=16), jnp.bincount(x, weights, length=16)


@of("f32[8,8]")
def triangles_and_diagonals(x: Array) -> tuple[Array, ...]:
    return jnp.tril(x) @ jnp.triu(x), jnp.diag(x), jnp.trace(x), jnp.diag(x[0])


@of("f32[5,7]", "f32[5,7]")
def rearranged(x: Array, y: Array) -> tuple[Array, ...]:
    joined = jnp.concatenate([x, y[:, ::-1]], 1)
    return jnp.roll(joined, 3, 1), jnp.pad(x, 2, mode="reflect"), jnp.repeat(x, 2, 0), jnp.rot90(y)


@of("f32[30,4]", "s32[12]:below30", "s32[12]:below30", "f32[12]")
def sparse_product(x: Array, rows: Array, columns: Array, values: Array) -> Array:
    return jnp.zeros((30, 4)).at[rows].add(values[:, None] * x[columns])


@of("f32[2,8,16]", "s32[2]:below9")
def mean_of_valid_positions(x: Array, lengths: Array) -> Array:
    mask = jnp.arange(8) < lengths[:, None]
    return (x * mask[..., None]).sum(1) / jnp.maximum(lengths, 1)[:, None]


@of("f32[8,16,16,4]", "s32[8]:below17")
def key_cache_update(cache: Array, position: Array) -> Array:
    new = cache[:, 0]
    update = jax.vmap(lambda c, n, p: lax.dynamic_update_index_in_dim(c, n, p, 0))
    return update(cache, new, position)


@of("f32[9]", "s32[30]:below9", "s32[30]:below9", "f32[9,4]")
def gradient_of_graph_attention(
    a: Array, source: Array, target: Array, h: Array
) -> tuple[Array, tuple[Array, Array]]:
    def loss(a: Array, h: Array) -> Array:
        edges = jax.nn.leaky_relu(a[source] + h[target, 0], 0.2)
        p = jnp.exp(edges - jax.ops.segment_max(edges, target, 9)[target])
        share = p / jax.ops.segment_sum(p, target, 9)[target]
        return jnp.tanh(jax.ops.segment_sum(share[:, None] * h[source], target, 9)).sum()

    return jax.value_and_grad(loss, (0, 1))(a, h)


@of("f32[8,9]", "f32[30]:scaled6", "f32[30]:scaled6")
def sampled_coordinates(image: Array, y: Array, x: Array) -> tuple[Array, ...]:
    modes = ("constant", "nearest", "wrap", "reflect")
    sampled = jax.scipy.ndimage.map_coordinates
    return tuple(sampled(image, [y, x], order=1, mode=mode) for mode in modes)
