"""Joins, groups, runs, windows, hashes, bytes and bits: arrays as tables and as streams."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of


@of("s32[60]:below40", "s32[25]:below40", "f32[25]")
def left_join_by_sorted_keys(left: Array, right: Array, values: Array) -> tuple[Array, Array]:
    order = jnp.argsort(right, stable=True)
    keys = right[order]
    at = jnp.searchsorted(keys, left)
    found = (at < 25) & (keys[jnp.minimum(at, 24)] == left)
    counts = jnp.searchsorted(keys, left, side="right") - at
    return jnp.where(found, values[order][jnp.minimum(at, 24)], jnp.nan), counts


@of("f32[30]:fraction", "f32[50]:fraction", "f32[50]")
def last_quote_before_each_trade(trades: Array, times: Array, prices: Array) -> Array:
    order = jnp.argsort(times)
    at = jnp.searchsorted(times[order], trades, side="right") - 1
    return jnp.where(at < 0, jnp.nan, prices[order][jnp.maximum(at, 0)])


@of("s32[80]:below6", "f32[80]")
def groups_with_mean_deviation_first_and_last(keys: Array, x: Array) -> tuple[Array, ...]:
    counts = jax.ops.segment_sum(jnp.ones_like(x), keys, 6)
    means = jax.ops.segment_sum(x, keys, 6) / counts
    variance = jax.ops.segment_sum((x - means[keys]) ** 2, keys, 6) / (counts - 1)
    at = jnp.arange(80)
    first = x[jax.ops.segment_min(at, keys, 6)]
    last = x[jax.ops.segment_max(at, keys, 6)]
    return means, jnp.sqrt(variance), first, last, x - means[keys]


@of("u8[100]:below3")
def run_lengths_and_back(x: Array) -> tuple[Array, Array, Array]:
    starts = jnp.concatenate([jnp.ones(1, bool), x[1:] != x[:-1]])
    run = jnp.cumsum(starts) - 1
    lengths = jnp.zeros(100, jnp.int32).at[run].add(1)
    values = jnp.zeros(100, jnp.uint8).at[run].set(x)
    return values, lengths, jnp.repeat(values, lengths, total_repeat_length=100)


@of("u8[96]")
def words_of_ascii_text(x: Array) -> tuple[Array, Array, Array]:
    text = 97 + x % 28
    text = jnp.where(text > 122, 32, text).astype(jnp.uint8)
    title = jnp.concatenate([jnp.ones(1, bool), text[:-1] == 32]) & (text != 32)
    counts = jnp.bincount(text - 32, length=96)
    return jnp.where(title, text ^ 32, text), title.sum(), counts


@of("s32[20]")
def decimal_digits_of_integers(x: Array) -> tuple[Array, Array]:
    negative = x < 0
    size = jnp.where(negative, -(x + 1), x).astype(jnp.uint32) + negative
    powers = 10 ** jnp.arange(9, -1, -1, dtype=jnp.uint32)
    digits = (size[:, None] // powers % 10).astype(jnp.uint8)
    shown = jnp.cumsum(digits, 1, dtype=jnp.int32) > 0
    text = jnp.where(shown, digits + 48, 32).at[:, -1].set(digits[:, -1] + 48)
    back = (digits.astype(jnp.int32) * powers.astype(jnp.int32)).sum(1)
    return text, jnp.where(negative, -back, back)


@of("u8[64]:below10")
def numbers_parsed_from_digits(x: Array) -> Array:
    """A fold over bytes: nine is a comma, the rest are digits."""

    def step(state: tuple[Array, Array], byte: Array) -> tuple[tuple[Array, Array], Array]:
        number, scale = state
        comma = byte == 9
        new = jnp.where(comma, 0.0, number * 10 + byte)
        return (new, jnp.where(comma, scale + 1, scale)), new / 10.0 ** (scale % 5)

    return lax.scan(step, (jnp.float32(0), jnp.float32(0)), x)[1]


@of("u8[128]")
def checksums_of_bytes(x: Array) -> tuple[Array, Array, Array]:
    """CRC-32 by bits, Adler-32, FNV-1a."""

    def crc(c: Array, byte: Array) -> tuple[Array, None]:
        c = c ^ byte.astype(jnp.uint32)
        for _ in range(8):
            c = (c >> 1) ^ jnp.where(c & 1, jnp.uint32(0xEDB88320), jnp.uint32(0))
        return c, None

    def fnv(h: Array, byte: Array) -> tuple[Array, None]:
        return (h ^ byte.astype(jnp.uint32)) * jnp.uint32(16777619), None

    sums = jnp.cumsum(x.astype(jnp.uint32)) + 1
    adler = (sums.sum() % 65521) << 16 | sums[-1] % 65521
    c, _ = lax.scan(crc, jnp.uint32(0xFFFFFFFF), x)
    h, _ = lax.scan(fnv, jnp.uint32(2166136261), x)
    return ~c, adler, h


@of("u64[40]")
def xorshift_splitmix_and_popcounts(x: Array) -> tuple[Array, Array, Array]:
    z = x + jnp.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> 30)) * jnp.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> 27)) * jnp.uint64(0x94D049BB133111EB)
    z = z ^ (z >> 31)
    unit = (z >> 11).astype(jnp.float64) * 2.0**-53
    high = lax.shift_right_logical(z, lax.clz(x))
    return z, unit, lax.population_count(z ^ high)


@of("u32[48]:below65536", "u32[48]:below65536")
def interleaved_bits_and_distances(x: Array, y: Array) -> tuple[Array, Array, Array]:
    """Morton codes, in their order, with the bits that neighbours differ in."""

    def spread(v: Array) -> Array:
        for by, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
            v = (v | (v << by)) & jnp.uint32(mask)
        return v

    codes = jnp.sort(spread(x) | spread(y) << 1)
    gray = codes ^ (codes >> 1)
    return codes, gray, lax.population_count(gray[1:] ^ gray[:-1])


@of("f32[50]")
def floats_as_sortable_bits(x: Array) -> tuple[Array, Array]:
    """Radix sort of floats by two digits of 16 bits, and back."""
    raw = lax.bitcast_convert_type(x, jnp.uint32)
    keys = jnp.where(raw >> 31, ~raw, raw | jnp.uint32(1 << 31))
    for shift in (0, 16):
        keys = keys[jnp.argsort((keys >> shift) & 0xFFFF, stable=True)]
    back = jnp.where(keys >> 31, keys & jnp.uint32(0x7FFFFFFF), ~keys)
    return keys, lax.bitcast_convert_type(back, jnp.float32)


@of("f32[120]", "s32[]:below20")
def moving_means_extremes_and_bands(x: Array, lag: Array) -> tuple[Array, ...]:
    total = jnp.concatenate([jnp.zeros(1), jnp.cumsum(x)])
    means = (total[10:] - total[:-10]) / 10
    windows = x[jnp.arange(111)[:, None] + jnp.arange(10)]
    deviation = windows.std(1)
    shifted = jnp.roll(x, lag)
    change = jnp.where(jnp.arange(120) < lag, jnp.nan, x / shifted - 1)
    low, high = windows.min(1), windows.max(1)
    return means, means + 2 * deviation, (x[9:] - low) / (high - low), change


@of("f32[100]:positive", "f32[100]")
def drawdown_sharpe_and_weighted_price(price: Array, noise: Array) -> tuple[Array, ...]:
    top = lax.cummax(price)
    drawdown = price / top - 1
    worst = jnp.argmin(drawdown)
    returns = jnp.diff(jnp.log(price))
    ratio = returns.mean() / returns.std(ddof=1) * jnp.sqrt(252.0)
    volume = jnp.abs(noise)
    vwap = jnp.cumsum(price * volume) / jnp.cumsum(volume)
    return drawdown, worst, jnp.argmax(price[:100] * (jnp.arange(100) <= worst)), ratio, vwap


@of("f32[100]", "f32[100]:fraction")
def exponential_averages_of_uneven_steps(x: Array, gaps: Array) -> tuple[Array, Array]:
    fade = jnp.exp(-gaps)

    def merge(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
        return a[0] * b[0], a[1] * b[0] + b[1]

    _, mean = lax.associative_scan(merge, (fade, (1 - fade) * x))
    _, square = lax.associative_scan(merge, (fade, (1 - fade) * x * x))
    return mean, jnp.sqrt(jnp.maximum(square - mean**2, 0))


@of("s32[12,10]:below4", "bf16[12,10]:digits")
def places_of_extremes_with_ties(x: Array, y: Array) -> tuple[Array, ...]:
    values, places = lax.top_k(x, 4)
    last = 9 - jnp.argmax(x[:, ::-1], 1)
    return jnp.argmax(x, 1), jnp.argmin(y, 0), last, values, places, jnp.argsort(y, 1)


@of("f32[200]", "f32[200]:positive")
def weighted_histogram_equalised(x: Array, w: Array) -> tuple[Array, Array, Array]:
    counts, edges = jnp.histogram(x, bins=16, range=(-3.0, 3.0), weights=w)
    share = jnp.cumsum(counts) / counts.sum()
    return counts, jnp.interp(x, edges[1:], share), jnp.digitize(x, edges)


@of("f32[90]", "s32[90]:below5", "s32[90]:below7")
def pivot_table_with_shares(x: Array, rows: Array, columns: Array) -> tuple[Array, Array]:
    cube = jnp.zeros((5, 7)).at[rows, columns].add(jnp.abs(x))
    most = jnp.full((5, 7), -jnp.inf).at[rows, columns].max(x)
    return cube / cube.sum(1, keepdims=True), most


@of("s32[40]:below30", "s32[40]:below30")
def connected_components_by_labels(a: Array, b: Array) -> tuple[Array, Array]:
    def more(state: tuple[Array, Array, Array]) -> Array:
        return state[1]

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        labels, _, n = state
        least = jnp.minimum(labels[a], labels[b])
        new = labels.at[a].min(least).at[b].min(least)
        new = new[new]
        return new, (new != labels).any(), n + 1

    labels, _, n = lax.while_loop(more, step, (jnp.arange(30), jnp.array(True), 0))
    return labels, n


@of("f32[64,8]", "f32[5,8]")
def nearest_and_voted_neighbours(points: Array, queries: Array) -> tuple[Array, Array, Array]:
    square = (points**2).sum(1) - 2 * queries @ points.T + (queries**2).sum(1)[:, None]
    near, places = lax.top_k(-square, 5)
    labels = (points[:, 0] > 0).astype(jnp.int32) + (points[:, 1] > 0)
    votes = jax.nn.one_hot(labels[places], 3).sum(1)
    return jnp.sqrt(jnp.maximum(-near, 0)), places, votes.argmax(1)


@of("f32[8,40]", "s32[8]:below40")
def padded_rows_compacted_and_ranked(x: Array, lengths: Array) -> tuple[Array, ...]:
    valid = jnp.arange(40) < lengths[:, None]
    ends = jnp.cumsum(lengths)
    place = jnp.where(valid, (ends - lengths)[:, None] + jnp.arange(40), 320)
    flat = jnp.zeros(320).at[place].set(x, mode="drop")
    row = jnp.searchsorted(ends, jnp.arange(320), side="right")
    ranks = jnp.argsort(jnp.argsort(jnp.where(valid, x, jnp.inf), 1), 1)
    centred = jnp.where(valid, x - jnp.mean(x, 1, keepdims=True, where=valid), 0)
    return flat, row, ranks, centred
