"""Folds by functions of one's own, scans and sorts, in narrow and in complex types."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of


@of("bf16[12,40]")
def scaled_log_sum_by_pairs(x: Array) -> Array:
    """Folds with the logarithm of a sum of exponentials."""

    def both(a: Array, b: Array) -> Array:
        return jnp.maximum(a, b) + jnp.log1p(jnp.exp(-jnp.abs(a - b)))

    return lax.reduce(x, jnp.bfloat16(-1e4), both, (1,))


@of("f16[10,30]")
def farthest_from_zero(x: Array) -> Array:
    def farther(a: Array, b: Array) -> Array:
        return jnp.where(jnp.abs(a) >= jnp.abs(b), a, b)

    return lax.reduce(x, jnp.float16(0), farther, (1,))


@of("f16[200]", "s32[200]:below50")
def largest_with_smallest_key(x: Array, keys: Array) -> object:
    def better(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
        first = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
        return jnp.where(first, a[0], b[0]), jnp.where(first, a[1], b[1])

    start = jnp.float16(-jnp.inf), jnp.int32(2**31 - 1)
    return lax.reduce((x, keys), start, better, (0,))


@of("bf16[20,32]")
def mean_and_square_by_merging(x: Array) -> object:
    """Merges counts, means and sums of squares (Chan et al.)."""

    def merged(a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
        count = a[0] + b[0]
        shift = b[1] - a[1]
        share = jnp.where(count > 0, b[0] / jnp.maximum(count, 1), 0)
        return count, a[1] + shift * share, a[2] + b[2] + shift * shift * a[0] * share

    zero = jnp.bfloat16(0)
    given = jnp.ones_like(x), x, jnp.zeros_like(x)
    return lax.reduce(given, (zero, zero, zero), merged, (1,))


@of("f16[8,20]:fraction")
def product_of_complements(x: Array) -> Array:
    return 1 - lax.reduce(1 - x, jnp.float16(1), lax.mul, (1,))


@of("bf16[5,6,7]")
def folds_of_two_dimensions(x: Array) -> tuple[Array, Array]:
    least = lax.reduce(x, jnp.bfloat16(jnp.inf), lax.min, (0, 2))
    return least, lax.reduce(x * x, jnp.bfloat16(0), lax.add, (0, 2))


@of("f16[4,50]")
def windows_of_root_mean_squares(x: Array) -> Array:
    squares = lax.reduce_window(x * x, jnp.float16(0), lax.add, (1, 8), (1, 2), "VALID")
    return jnp.sqrt(squares / 8)


@of("bf16[3,60]")
def cumulative_log_sums_of_bf16(x: Array) -> Array:
    return lax.cumlogsumexp(x, axis=1)


@of("bf16[4,80]")
def cumulative_maxima_and_sums_backwards(x: Array) -> tuple[Array, Array]:
    return lax.cummax(x, axis=1, reverse=True), lax.cumsum(x, axis=1, reverse=True)


@of("f16[300]")
def gradient_of_a_cumulative_sum(x: Array) -> Array:
    return jax.grad(lambda x: (jnp.cumsum(x) ** 2).mean() / 16)(x)


@of("bf16[8,25]:fraction")
def cumulative_products_of_gates(x: Array) -> Array:
    return jnp.cumprod(1 - x / 4, axis=1)


@of("f16[6,32]:unit", "f16[6,32]")
def linear_recurrence_by_an_associative_scan(a: Array, b: Array) -> Array:
    def merged(x: tuple[Array, Array], y: tuple[Array, Array]) -> tuple[Array, Array]:
        return x[0] * y[0], y[0] * x[1] + y[1]

    return lax.associative_scan(merged, (a, b), axis=1)[1]


@of("bf16[16,12]:fraction", "bf16[16,12]", "bf16[12]")
def selective_state_space_scan(gate: Array, x: Array, start: Array) -> object:
    def step(state: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        state = jnp.exp(-row[0]) * state + row[0] * row[1]
        return state, jnp.tanh(state)

    return lax.scan(step, start, (gate, x))


@of("f16[12,8]", "f16[8,16]:hundredths", "f16[8,16]:hundredths")
def minimal_gated_unit_f16(xs: Array, w: Array, u: Array) -> Array:
    def step(h: Array, x: Array) -> tuple[Array, Array]:
        gate = jax.nn.sigmoid(x @ w[:, :8] + h @ u[:, :8])
        new = jnp.tanh(x @ w[:, 8:] + (gate * h) @ u[:, 8:])
        h = (1 - gate) * h + gate * new
        return h, h

    return lax.scan(step, jnp.zeros(8, jnp.float16), xs)[1]


@of("bf16[10,8]", "bf16[8,8]:hundredths")
def gradient_of_a_scan_in_bf16(xs: Array, w: Array) -> Array:
    def loss(w: Array) -> Array:
        def step(h: Array, x: Array) -> tuple[Array, None]:
            return jnp.tanh(x + h @ w), None

        return (lax.scan(step, jnp.zeros(8, jnp.bfloat16), xs)[0] ** 2).sum()

    return jax.grad(loss)(w)


@of("bf16[40]", "f32[3]:fraction")
def filter_with_counter_in_floats(x: Array, weights: Array) -> Array:
    """A loop whose counter is a float in the loop."""

    def turn(i: Array, total: Array) -> Array:
        age = i.astype(jnp.bfloat16)
        return total * jnp.bfloat16(0.5) + x[i] * jnp.exp(-age / 8)

    return lax.fori_loop(0, 40, turn, jnp.bfloat16(0)) * weights


@of("f16[30]", "s32[]:below30")
def trips_and_slices_from_data(x: Array, count: Array) -> Array:
    def turn(i: Array, kept: Array) -> Array:
        part = lax.dynamic_slice(x, (i * 3 - 5,), (6,))
        return lax.dynamic_update_slice(kept, kept[:6] * jnp.float16(0.5) + part, (i * 7 - 3,))

    return lax.fori_loop(0, count, turn, jnp.zeros(30, jnp.float16))


@of("u32[8]", "bf16[8]")
def generator_in_a_loop_then_noise(state: Array, x: Array) -> Array:
    def turn(_: Array, s: Array) -> Array:
        s = s ^ (s << 13)
        s = s ^ (s >> 17)
        return s ^ (s << 5)

    bits = lax.fori_loop(0, 50, turn, state | 1)
    return x + (bits >> 8).astype(jnp.bfloat16) / 2**24


@of("s32[6]:below1000", "f16[6]")
def common_divisors_scale_floats(n: Array, x: Array) -> Array:
    def divisor(a: Array) -> Array:
        return lax.while_loop(lambda s: s[1] > 0, lambda s: (s[1], s[0] % s[1]), (a, a * 0 + 360))[
            0
        ]

    return x / jax.vmap(divisor)(n).astype(jnp.float16)


@of("bf16[300]", "s32[300]:below16")
def means_of_segments(x: Array, segments: Array) -> Array:
    sums = jax.ops.segment_sum(x, segments, 16)
    counts = jax.ops.segment_sum(jnp.ones_like(x), segments, 16)
    return sums / jnp.maximum(counts, 1)


@of("f16[200]", "s32[200]:below12")
def softmax_over_segments_f16(x: Array, segments: Array) -> Array:
    top = jax.ops.segment_max(x, segments, 12)
    powers = jnp.exp(x - top[segments])
    return powers / jax.ops.segment_sum(powers, segments, 12)[segments]


@of("bf16[80,8]", "s32[80]:below10", "bf16[10,8]")
def scattered_messages(x: Array, receivers: Array, nodes: Array) -> Array:
    return jax.nn.relu(nodes.at[receivers].add(x) / 8)


@of("f16[60]", "s32[60]:below60", "f16[60]")
def scattered_products_and_extremes(x: Array, places: Array, y: Array) -> tuple[Array, Array]:
    return x.at[places].multiply(y), x.at[places].max(y)


@of("bf16[20,6]", "s32[40]:below20", "bf16[40,6]")
def gradient_of_gathered_rows(table: Array, rows: Array, y: Array) -> Array:
    return jax.grad(lambda table: (jnp.tanh(table[rows]) * y).sum())(table)


@of("bf16[100]", "f16[100]")
def sorted_by_a_narrow_key(keys: Array, x: Array) -> object:
    return lax.sort((keys, x), num_keys=1, is_stable=True)


@of("f16[12,20]")
def sorted_by_squares_of_keys(x: Array) -> Array:
    return jnp.take_along_axis(x, jnp.argsort(x * x, axis=1), 1)


@of("bf16[12,20]", "s32[12,20]:below4")
def sorted_by_group_and_value(x: Array, groups: Array) -> object:
    return lax.sort((groups, -x, x * 2), num_keys=2)


@of("f16[8,30]")
def trimmed_means(x: Array) -> Array:
    return jnp.sort(x, axis=1)[:, 5:25].mean(1)


@of("bf16[8,30]")
def probabilities_of_the_top_five(x: Array) -> tuple[Array, Array]:
    values, places = lax.top_k(x, 5)
    return jax.nn.softmax(values), places


@of("bf16[6,40]")
def ranks_and_losses_of_pairs(x: Array) -> tuple[Array, Array]:
    ranks = jnp.argsort(jnp.argsort(x, axis=1), axis=1)
    pairs = x[:, :20, None] - x[:, None, 20:]
    return ranks, jnp.log1p(jnp.exp(-pairs)).mean((1, 2))


@of("c64[40]", "c64[40]")
def complex_gates(x: Array, y: Array) -> tuple[Array, ...]:
    return x * jnp.conj(y), jnp.abs(x), jnp.angle(x * y), x / (1 + jnp.abs(y))


@of("c64[8,8]", "c64[8]")
def complex_layer_with_modulus(w: Array, x: Array) -> Array:
    y = w @ x
    size = jnp.abs(y)
    return y * jax.nn.relu(size - 0.5) / (size + 1e-6)


@of("c64[20]")
def exponentials_and_roots_of_complex(x: Array) -> tuple[Array, ...]:
    return jnp.exp(x), jnp.log(x), jnp.sqrt(x), jnp.tanh(x)


@of("f32[16,8]", "f32[8]:angles")
def diagonal_recurrence_of_complex(xs: Array, angles: Array) -> Array:
    turn = 0.9 * jnp.exp(1j * angles)

    def step(state: Array, x: Array) -> tuple[Array, Array]:
        state = turn * state + x
        return state, state.real

    return lax.scan(step, jnp.zeros(8, jnp.complex64), xs)[1]


@of("c64[12]")
def gradient_of_a_complex_energy(x: Array) -> Array:
    return jax.grad(lambda x: (jnp.abs(jnp.fft.fft(x)) ** 2).sum())(x)


@of("f32[64]", "f32[33]")
def gated_spectrum(x: Array, gate: Array) -> Array:
    return jnp.fft.irfft(jnp.fft.rfft(x) * jax.nn.sigmoid(gate), 64)


@of("c64[6,6]")
def hermitian_products(x: Array) -> tuple[Array, Array]:
    square = x @ x.conj().T
    return square, jnp.trace(square).real


@of("bf16[30]", "bf16[30]")
def comparisons_decide_in_narrow_types(x: Array, y: Array) -> tuple[Array, ...]:
    z = x * y
    return (
        z > x,
        jnp.where(z > jnp.bfloat16(0.1), z, y),
        jnp.floor(z * 4),
        (z * 10).astype(jnp.int32),
    )


@of("f16[16,16]")
def distances_by_inner_products(x: Array) -> Array:
    squares = (x * x).sum(1)
    return jnp.sqrt(jnp.maximum(squares[:, None] + squares - 2 * (x @ x.T), 0))


@of("bf16[24,3]", "bf16[5,3]")
def one_step_of_k_means(x: Array, centres: Array) -> Array:
    distances = ((x[:, None] - centres) ** 2).sum(-1)
    chosen = jax.nn.one_hot(distances.argmin(1), 5, dtype=x.dtype)
    return chosen.T @ x / jnp.maximum(chosen.sum(0), 1)[:, None]


@of("bf16[6,10]", "bf16[10]")
def soft_sorting_by_iteration(costs: Array, weights: Array) -> Array:
    """Three rounds of Sinkhorn's iteration on logarithms."""
    rows = jnp.zeros(6, costs.dtype)
    columns = jnp.zeros(10, costs.dtype)
    for _ in range(3):
        rows = -jax.nn.logsumexp(columns - costs, axis=1)
        columns = jnp.log(jax.nn.softmax(weights)) - jax.nn.logsumexp(rows[:, None] - costs, axis=0)
    return jnp.exp(rows[:, None] + columns - costs)
