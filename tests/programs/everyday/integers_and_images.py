"""Tricks with bits, arithmetic of integers of every width, and images of bytes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of


@of("s8[40]", "s8[40]", "u8[40]", "u8[40]")
def arithmetic_of_bytes(a: Array, b: Array, c: Array, d: Array) -> object:
    return (
        a + b,
        a * b,
        a - b,
        -a,
        jnp.abs(a),
        c - d,
        c * d,
        c // (d | 1),
        c % (d | 1),
        a // (b | 1),
    )


@of("s16[30]", "s16[30]", "u16[30]", "u16[30]")
def arithmetic_of_half_words(a: Array, b: Array, c: Array, d: Array) -> object:
    return (
        a * b,
        a % (b | 1),
        a >> 3,
        c << (d % 16),
        c >> (d % 16),
        jnp.sign(a),
        c ** (d % 4),
        a ^ b,
    )


@of("s32[30]", "s32[30]", "u32[30]", "u32[30]")
def arithmetic_of_words(a: Array, b: Array, c: Array, d: Array) -> object:
    return (
        a * b + 7,
        jnp.divmod(a, b | 1),
        jnp.remainder(a, 17),
        lax.rem(a, b | 1),
        lax.div(a, jnp.int32(-7)),
        c // 10,
        c % 1000,
        jnp.maximum(a, b) - jnp.minimum(a, b),
        jnp.clip(a, -1000, 1000),
        (c ^ d) & ~(c & d),
    )


@of("s64[30]", "s64[30]", "u64[30]", "u64[30]")
def arithmetic_of_long_words(a: Array, b: Array, c: Array, d: Array) -> object:
    high = (c >> 32) * (d >> 32)
    return a * b, a // (b | 1), c // (d | 1), c % 1000003, a >> 7, c << (d % 64), high, jnp.abs(a)


@of("s8[20]", "u8[20]", "s16[20]", "f32[20]:scaled1000")
def conversions_between_widths(a: Array, b: Array, c: Array, x: Array) -> object:
    return (
        a.astype(jnp.uint8),
        a.astype(jnp.uint32),
        b.astype(jnp.int8),
        c.astype(jnp.int8),
        c.astype(jnp.uint16),
        x.astype(jnp.int16),
        x.astype(jnp.int32),
        (a.astype(jnp.int32) * 1000).astype(jnp.bfloat16),
        lax.bitcast_convert_type(a, jnp.uint8),
        lax.bitcast_convert_type(b.reshape(5, 4), jnp.uint32),
    )


@of("u32[40]")
def counted_reversed_and_smeared(x: Array) -> object:
    v = ((x >> 1) & 0x55555555) | ((x & 0x55555555) << 1)
    v = ((v >> 2) & 0x33333333) | ((v & 0x33333333) << 2)
    v = ((v >> 4) & 0x0F0F0F0F) | ((v & 0x0F0F0F0F) << 4)
    smear = x
    for s in (1, 2, 4, 8, 16):
        smear = smear | (smear >> s)
    return (
        lax.population_count(x),
        lax.clz(x),
        v,
        smear + 1,
        x & (~x + 1),
        lax.population_count(~x & (x - 1)),
    )


@of("u32[20]", "u32[20]")
def hashes_of_words(a: Array, b: Array) -> object:
    def rotl(x: Array, r: int) -> Array:
        return (x << r) | (x >> (32 - r))

    h = a * jnp.uint32(0xCC9E2D51)
    h = rotl(h, 15) * jnp.uint32(0x1B873593) ^ b
    h = rotl(h, 13) * 5 + jnp.uint32(0xE6546B64)
    wang = (a ^ 61) ^ (a >> 16)
    wang = (wang + (wang << 3)) ^ ((wang + (wang << 3)) >> 4)
    return h ^ (h >> 16), wang * jnp.uint32(0x27D4EB2D), (a * b) >> 27


@of("u64[20]")
def mixing_of_splitmix(x: Array) -> object:
    z = x + jnp.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> 30)) * jnp.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> 27)) * jnp.uint64(0x94D049BB133111EB)
    z = z ^ (z >> 31)
    return z, (z >> 11).astype(jnp.float64) * 2.0**-53, lax.population_count(z), lax.clz(x)


@of("f32[30]", "f16[30]", "bf16[30]")
def fields_of_floats(x: Array, y: Array, z: Array) -> object:
    bits = lax.bitcast_convert_type(x, jnp.uint32)
    half = lax.bitcast_convert_type(y, jnp.uint16)
    brain = lax.bitcast_convert_type(z, jnp.uint16)
    wide = lax.bitcast_convert_type(brain.astype(jnp.uint32) << 16, jnp.float32)
    return (
        bits >> 31,
        (bits >> 23) & 255,
        bits & 0x7FFFFF,
        (half >> 10) & 31,
        wide,
        jnp.nextafter(x, 9.0),
    )


@of("s32[12]:below1000", "s32[12]:below1000")
def divisors_and_digits(a: Array, b: Array) -> object:
    a, b = a + 1, b + 1
    g = jnp.gcd(a, b)

    def digits(n: Array) -> Array:
        return lax.while_loop(
            lambda s: s[0] > 0, lambda s: (s[0] // 10, s[1] + s[0] % 10), (n, jnp.int32(0))
        )[1]

    return g, jnp.lcm(a, b), jax.vmap(digits)(a), a * b // g


@of("u32[6]", "u32[6]:below60")
def modular_powers_and_inverses(base: Array, e: Array) -> object:
    p = jnp.uint32(65521)

    def step(i: int, s: tuple[Array, Array]) -> tuple[Array, Array]:
        r, b = s
        r = jnp.where((e >> i) & 1, r * b % p, r)
        return r, b * b % p

    start = (jnp.ones_like(base), base % p)
    return lax.fori_loop(0, 6, step, start)[0]


@of("s32[20]", "s32[20]")
def fixed_point_with_rounding(a: Array, b: Array) -> object:
    a, b = a >> 12, b >> 12
    high = (a * (b >> 10) + (1 << 4)) >> 5
    saturated = jnp.clip(high, -(2**15), 2**15 - 1).astype(jnp.int16)
    return saturated, saturated.astype(jnp.float32) / 256, lax.shift_right_logical(a, jnp.int32(5))


@of("u8[12,10,3]")
def greyscale_threshold_and_equalised(x: Array) -> object:
    y = (77 * x[..., 0].astype(jnp.int32) + 150 * x[..., 1] + 29 * x[..., 2]) >> 8
    counts = jnp.bincount(y.reshape(-1), length=256)
    cdf = jnp.cumsum(counts)
    low = cdf[jnp.argmax(cdf > 0)]
    table = jnp.round((cdf - low) * 255.0 / (120 - low)).astype(jnp.uint8)
    return y.astype(jnp.uint8), table[y], jnp.where(y > 127, 255, 0).astype(jnp.uint8)


@of("u8[10,12]")
def edges_and_blur_of_bytes(x: Array) -> object:
    p = jnp.pad(x.astype(jnp.int16), 1, mode="edge")
    gx = p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:] - p[:-2, :-2] - 2 * p[1:-1, :-2] - p[2:, :-2]
    gy = p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:] - p[:-2, :-2] - 2 * p[:-2, 1:-1] - p[:-2, 2:]
    size = jnp.clip(jnp.abs(gx) + jnp.abs(gy), 0, 255).astype(jnp.uint8)
    blur = sum(p[i : i + 10, j : j + 12] for i in range(3) for j in range(3)) // 9
    return size, blur.astype(jnp.uint8)


@of("u8[8,8,4]", "u8[8,8,4]")
def alpha_over_and_blends(a: Array, b: Array) -> object:
    x, y = a.astype(jnp.float32) / 255, b.astype(jnp.float32) / 255
    alpha = x[..., 3:] + y[..., 3:] * (1 - x[..., 3:])
    colour = (x[..., :3] * x[..., 3:] + y[..., :3] * y[..., 3:] * (1 - x[..., 3:])) / jnp.maximum(
        alpha, 1e-6
    )
    screen = 255 - ((255 - a.astype(jnp.uint16)) * (255 - b.astype(jnp.uint16)) + 127) // 255
    return jnp.round(colour * 255).astype(jnp.uint8), screen.astype(jnp.uint8), a // 2 + b // 2


@of("u8[9,9]")
def gamma_brightness_and_dither(x: Array) -> object:
    v = x.astype(jnp.float32) / 255
    linear = jnp.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)
    bright = jnp.clip(x.astype(jnp.int16) * 3 // 2 - 20, 0, 255).astype(jnp.uint8)
    bayer = jnp.array([[0, 8, 2], [12, 4, 14], [3, 11, 1]]).repeat(3, 0).repeat(3, 1) * 16
    return jnp.round(linear**0.5 * 255).astype(jnp.uint8), bright, (x > bayer).astype(jnp.uint8)


@of("u8[8,10]")
def morphology_and_median_of_bytes(x: Array) -> object:
    p = jnp.pad(x, 1, mode="reflect")
    stack = jnp.stack([p[i : i + 8, j : j + 10] for i in range(3) for j in range(3)])
    return (
        jnp.median(stack, 0).astype(jnp.uint8),
        stack.max(0) - stack.min(0),
        jnp.sort(stack, 0)[4],
    )


@of("u8[6,8,3]")
def luma_and_chroma_and_back(x: Array) -> object:
    m = jnp.array([[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]])
    y = x.astype(jnp.float32) @ m.T + jnp.array([0, 128, 128])
    q = jnp.clip(jnp.round(y), 0, 255).astype(jnp.uint8)
    back = jnp.linalg.inv(m) @ (q.astype(jnp.float32) - jnp.array([0, 128, 128])).reshape(-1, 3).T
    return q, jnp.clip(jnp.round(back.T), 0, 255).astype(jnp.uint8)


@of("u8[64]")
def packed_bits_and_run_lengths(x: Array) -> object:
    bits = jnp.unpackbits(x[:8])
    change = jnp.concatenate([jnp.ones(1, bool), bits[1:] != bits[:-1]])
    run = jnp.cumsum(change) - 1
    return (
        bits,
        jnp.packbits(bits),
        jnp.bincount(run, length=64),
        jnp.packbits(x > 100, bitorder="little"),
    )


@of("s4[24]", "s4[24]", "u4[24]")
def nibbles_widened_and_combined(a: Array, b: Array, c: Array) -> object:
    wide = a.astype(jnp.int8) * b.astype(jnp.int8)
    packed = (a.astype(jnp.int8) << 4) | c.astype(jnp.int8)
    return wide, packed, packed >> 4, a.astype(jnp.float32) * 0.5, c.astype(jnp.int32).sum()
