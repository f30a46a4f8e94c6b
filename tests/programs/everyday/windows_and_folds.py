"""Reductions by functions of one's own, windows, cumulative operations and associative scans."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from programs.function import of


@of("f32[6,20]")
def largest_by_magnitude(x: Array) -> Array:
    def larger(a: Array, b: Array) -> Array:
        return jnp.where(jnp.abs(a) >= jnp.abs(b), a, b)

    return lax.reduce(x, np.float32(0), larger, (1,))


@of("f32[5,30]")
def mean_and_variance_by_welford(x: Array) -> object:
    def merged(a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
        (n, m, s), (k, p, t) = a, b
        total = n + k
        d = p - m
        safe = jnp.maximum(total, 1)
        return total, m + d * k / safe, s + t + d * d * n * k / safe

    zero = np.float32(0)
    n, m, s = lax.reduce((jnp.ones_like(x), x, jnp.zeros_like(x)), (zero,) * 3, merged, (1,))
    return m, s / n


@of("bf16[4,25]")
def log_sums_by_a_custom_reducer(x: Array) -> Array:
    return lax.reduce(x.astype(jnp.float32), np.float32(-np.inf), jnp.logaddexp, (1,))


@of("s32[6,16]", "s32[6,16]")
def lexicographic_minimum(a: Array, b: Array) -> object:
    def smaller(x: tuple[Array, Array], y: tuple[Array, Array]) -> tuple[Array, Array]:
        first = (x[0] < y[0]) | ((x[0] == y[0]) & (x[1] <= y[1]))
        return jnp.where(first, x[0], y[0]), jnp.where(first, x[1], y[1])

    top = np.int32(2**31 - 1)
    return lax.reduce((a % 4, b), (top, top), smaller, (1,))


@of("u32[8,12]", "u8[5,40]")
def bits_combined(x: Array, y: Array) -> object:
    ors = lax.reduce(x, np.uint32(0), lax.bitwise_or, (0,))
    ands = lax.reduce(x, np.uint32(2**32 - 1), lax.bitwise_and, (1,))
    parity = lax.reduce(y, np.uint8(0), lax.bitwise_xor, (1,))
    return ors, ands, parity


@of("f32[4,12]")
def products_and_logical_folds(x: Array) -> object:
    return jnp.prod(x, 1), (x > 1).any(1), (x > -3).all(0), jnp.prod(jnp.sign(x), 0)


@of("f32[2,10,10,3]")
def windows_of_all_kinds(x: Array) -> object:
    dims, strides = (1, 3, 3, 1), (1, 2, 2, 1)
    top = lax.reduce_window(x, -jnp.inf, lax.max, dims, strides, "SAME")
    low = lax.reduce_window(x, jnp.inf, lax.min, dims, (1, 1, 1, 1), "VALID")
    mean = lax.reduce_window(x, 0.0, lax.add, dims, strides, "SAME")
    ones = lax.reduce_window(jnp.ones_like(x), 0.0, lax.add, dims, strides, "SAME")
    return top, low, mean / ones


@of("f32[3,24]")
def dilated_windows_of_products(x: Array) -> object:
    product = lax.reduce_window(x, 1.0, lax.mul, (1, 3), (1, 1), "VALID", window_dilation=(1, 2))
    holes = lax.reduce_window(
        x, 0.0, lax.add, (1, 4), (1, 2), [(0, 0), (2, 1)], base_dilation=(1, 2)
    )
    return product, holes


@of("bf16[2,12,12]", "bf16[2,6,6]")
def gradients_of_two_poolings_in_bf16(x: Array, up: Array) -> object:
    def top(x: Array) -> Array:
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2), (1, 2, 2), "VALID")

    def mean(x: Array) -> Array:
        return lax.reduce_window(x, 0.0, lax.add, (1, 2, 2), (1, 2, 2), "VALID") / 4

    return jax.vjp(top, x)[1](up), jax.vjp(mean, x)[1](up)


@of("f32[1,9,9]", "f32[1,9,9]")
def gradient_of_overlapping_maxima(x: Array, up: Array) -> object:
    def top(x: Array) -> Array:
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3), (1, 1, 1), "SAME")

    return jax.vjp(top, x)[1](up)


@of("s32[40]", "u8[6,30]")
def running_extremes_of_integers(x: Array, y: Array) -> object:
    high = lax.reduce_window(x, np.int32(-(2**31)), lax.max, (5,), (1,), "SAME")
    sums = lax.reduce_window(y, np.uint8(0), lax.add, (2, 3), (2, 3), "VALID")
    return high, sums, lax.cummax(x), lax.cummin(y, axis=1), jnp.cumsum(y, 1)


@of("bf16[4,30]")
def cumulative_operations_in_bf16(x: Array) -> object:
    y = x / 4
    return jnp.cumsum(y, 1), lax.cumprod(1 + y / 8, 1), lax.cummax(x, 1), jnp.cumsum(y, 0)


@of("bf16[3,24]")
def cumulative_log_sums_and_softmax_in_bf16(x: Array) -> object:
    logs = lax.cumlogsumexp(x, 1)
    return logs, jnp.exp(x - logs)


@of("f16[2,40]", "f16[2,40]")
def gradients_of_cumulative_sums_in_f16(x: Array, up: Array) -> object:
    back = jax.vjp(lambda x: jnp.cumsum(x, 1), x)[1](up)
    return back, jax.vjp(lambda x: lax.cumsum(x, 1, reverse=True) / 8, x)[1](up)


@of("f32[3,20]:positive", "f32[3,20]")
def gradients_of_cumulative_products_and_maxima(x: Array, up: Array) -> object:
    products = jax.vjp(lambda x: jnp.cumprod(x, 1), x)[1](up)
    return products, jax.vjp(lambda x: lax.cummax(x, 1), up)[1](x)


@of("bf16[30,4]:fraction", "bf16[30,4]")
def gated_recurrence_by_a_scan_in_bf16(gate: Array, x: Array) -> Array:
    def joined(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
        return a[0] * b[0], a[1] * b[0] + b[1]

    return lax.associative_scan(joined, (gate, x))[1]


@of("f32[17,3,3]")
def products_of_matrices_by_a_scan(x: Array) -> Array:
    return lax.associative_scan(lambda a, b: a @ b, x / 2)


@of("f32[25,2]", "s32[25]:below3")
def sums_that_restart(x: Array, flags: Array) -> Array:
    def joined(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
        return a[0] | b[0], jnp.where(b[0], b[1], a[1] + b[1])

    starts = jnp.broadcast_to((flags == 0)[:, None], x.shape)
    return lax.associative_scan(joined, (starts, x))[1]


@of("f32[20]", "f32[20]")
def gradient_of_an_associative_scan(a: Array, b: Array) -> object:
    def joined(x: tuple[Array, Array], y: tuple[Array, Array]) -> tuple[Array, Array]:
        return x[0] * y[0], x[1] * y[0] + y[1]

    def loss(a: Array, b: Array) -> Array:
        return (lax.associative_scan(joined, (jax.nn.sigmoid(a), b))[1] ** 2).sum()

    return jax.grad(loss, (0, 1))(a, b)


@of("f32[40]")
def running_softmax_by_pairs(x: Array) -> object:
    def joined(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
        top = jnp.maximum(a[0], b[0])
        return top, a[1] * jnp.exp(a[0] - top) + b[1] * jnp.exp(b[0] - top)

    top, total = lax.associative_scan(joined, (x, jnp.ones_like(x)), reverse=True)
    return top + jnp.log(total)


@of("f32[60]")
def maximal_drop_and_subarray(x: Array) -> object:
    total = jnp.cumsum(x)
    least = jnp.minimum(lax.cummin(total), 0)
    drop = lax.cummax(total) - total
    return (total - least).max(), drop.max(), drop.argmax()
