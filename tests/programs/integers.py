"""Integer and bit tricks, and quantisation to s8 and f8."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of


@of("s32[1000]", "s32[1000]")
def wrapping_arithmetic(x: Array, y: Array) -> tuple[Array, ...]:
    return x + y, x * y, x - y, -x, jnp.abs(x)


@of("s32[1000]", "s32[1000]:digits")
def divisions(x: Array, y: Array) -> tuple[Array, ...]:
    return x // y, x % y, lax.div(x, y), lax.rem(x, y)


@of("u32[1000]", "u32[1000]:below32")
def shifts_and_rotations(x: Array, n: Array) -> tuple[Array, ...]:
    return x << n, x >> n, (x << n) | (x >> (32 - n)), x ^ (x >> 16)


@of("u32[1000]")
def counted_bits(x: Array) -> tuple[Array, ...]:
    return lax.population_count(x), lax.clz(x), x & (~x + 1), x & (x - 1)


@of("u32[1000]")
def murmur_finaliser(x: Array) -> Array:
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


@of("u8[64]", "u8[64,8]")
def packed_and_unpacked_bits(x: Array, y: Array) -> tuple[Array, Array]:
    return jnp.unpackbits(x), jnp.packbits(y > 127)


@of("f32[1000]:positive")
def fast_inverse_square_root(x: Array) -> Array:
    bits = jnp.int32(0x5F3759DF) - (lax.bitcast_convert_type(x, jnp.int32) >> 1)
    y = lax.bitcast_convert_type(bits, jnp.float32)
    return y * (1.5 - 0.5 * x * y * y)


@of("f32[1000]:scaled100")
def roundings_to_integers(x: Array) -> tuple[Array, ...]:
    found = jnp.floor(x), jnp.ceil(x), jnp.round(x), jnp.trunc(x)
    return tuple(y.astype(jnp.int32) for y in found)


@of("f32[1000]:positive")
def exponents_and_mantissas(x: Array) -> tuple[Array, ...]:
    mantissa, exponent = jnp.frexp(x)
    return mantissa, exponent, jnp.ldexp(mantissa, exponent), jnp.nextafter(x, 10.0)


@of("s8[32,64]", "s8[64,16]")
def int8_matmul(x: Array, w: Array) -> Array:
    return lax.dot(x, w, preferred_element_type=jnp.int32)


@of("f32[16,64]", "f32[64,16]")
def quantised_matmul(x: Array, w: Array) -> Array:
    def quantised(y: Array, axis: int) -> tuple[Array, Array]:
        scale = jnp.abs(y).max(axis, keepdims=True) / 127
        return jnp.round(y / scale).astype(jnp.int8), scale

    (a, s), (b, t) = quantised(x, 1), quantised(w, 0)
    return lax.dot(a, b, preferred_element_type=jnp.int32).astype(jnp.float32) * s * t


@of("f32[1000]")
def fake_quantisation(x: Array) -> Array:
    scale = (x.max() - x.min()) / 255
    zero = jnp.round(-x.min() / scale)
    return (jnp.clip(jnp.round(x / scale + zero), 0, 255) - zero) * scale


@of("f32[1000]:scaled20")
def through_f8(x: Array) -> tuple[Array, ...]:
    kinds = jnp.float8_e4m3fn, jnp.float8_e5m2
    return tuple(x.astype(kind).astype(jnp.float32) for kind in kinds)


@of("f32[16,32]", "f32[32,16]")
def f8_matmul(x: Array, w: Array) -> Array:
    def scaled(y: Array) -> tuple[Array, Array]:
        scale = jnp.abs(y).max() / 448
        return (y / scale).astype(jnp.float8_e4m3fn), scale

    (a, s), (b, t) = scaled(x), scaled(w)
    return lax.dot(a, b, preferred_element_type=jnp.float32) * s * t


@of("f32[512]")
def stochastic_like_rounding_to_bf16(x: Array) -> Array:
    bits = lax.bitcast_convert_type(x, jnp.uint32) + jnp.uint32(0x7FFF)
    return lax.bitcast_convert_type(bits & jnp.uint32(0xFFFF0000), jnp.float32)


@of("f32[64,16]")
def straight_through_signs(x: Array) -> Array:
    def loss(x: Array) -> Array:
        signs = x + lax.stop_gradient(jnp.sign(x) - x)
        return (signs @ jnp.ones(16) - 1).sum() ** 2

    return jax.grad(loss)(x)


@of("s32[200]:below1000")
def primes_by_trial(x: Array) -> Array:
    divisors = jnp.arange(2, 32)
    return ((x[:, None] % divisors != 0) | (x[:, None] == divisors)).all(1)


@of("s64[200]", "s64[200]:below1000")
def modular_powers(x: Array, exponent: Array) -> Array:
    modulus = 1_000_003

    def step(i: int, state: tuple[Array, Array]) -> tuple[Array, Array]:
        result, square = state
        result = jnp.where((exponent >> i) & 1, result * square % modulus, result)
        return result, square * square % modulus

    return lax.fori_loop(0, 10, step, (jnp.ones_like(x), x % modulus))[0]


@of("u8[32,32,3]")
def greyscale(x: Array) -> Array:
    weights = jnp.array([0.299, 0.587, 0.114])
    return (x.astype(jnp.float32) @ weights).astype(jnp.uint8)


@of("u8[16,16]")
def normalised_image(x: Array) -> Array:
    return (x.astype(jnp.float32) / 255 - 0.456) / 0.224


@of("u32[64]", "u32[64]")
def mixed_and_shifted_hashes(x: Array, key: Array) -> tuple[Array, ...]:
    """A round of xxHash, xorshift, and a fraction of the bits."""
    h = key + jnp.uint32(374761393) + x * jnp.uint32(3266489917)
    h = ((h << 17) | (h >> 15)) * jnp.uint32(668265263)
    h = (h ^ (h >> 15)) * jnp.uint32(2246822519)
    h = h ^ (h >> 13)
    s = x ^ (x << 13)
    s = s ^ (s >> 17)
    bits = (h >> 9) | jnp.uint32(0x3F800000)
    return h, s ^ (s << 5), lax.bitcast_convert_type(bits, jnp.float32) - 1


@of("s32[50]", "s32[50]", "s64[50]:digits")
def fixed_point(a: Array, b: Array, c: Array) -> tuple[Array, ...]:
    product = (a.astype(jnp.int64) * b.astype(jnp.int64) + 32768) >> 16
    rounded = jnp.clip(product + c, -(2**31), 2**31 - 1).astype(jnp.int32)
    overflows = ((a ^ b) >= 0) & (((a + b) ^ a) < 0)
    most = jnp.where(a < 0, jnp.int32(-(2**31)), jnp.int32(2**31 - 1))
    return rounded, jnp.where(overflows, most, a + b), (a & b) + ((a ^ b) >> 1)


@of("s8[8,16]", "s8[16,4]", "f32[4]:magnitude", "s32[4]:digits")
def requantised_layer(x: Array, w: Array, scale: Array, shift: Array) -> tuple[Array, Array]:
    sums = lax.dot(x.astype(jnp.int32), w.astype(jnp.int32)) + shift
    narrow = jnp.clip(jnp.round(sums * (scale * 1e-3)), -128, 127).astype(jnp.int8)
    return narrow, jax.nn.relu(sums.astype(scale.dtype) * scale).astype(jnp.bfloat16)


@of("f32[64]", "s32[64]:digits")
def floats_taken_apart(x: Array, n: Array) -> tuple[Array, ...]:
    up = jnp.nextafter(x, jnp.asarray(jnp.inf, x.dtype))
    signs = jnp.signbit(x), jnp.copysign(x, -n.astype(x.dtype))
    return *jnp.frexp(x), jnp.ldexp(x, n), up, jnp.nextafter(x, -x), *signs, *jnp.modf(x)
