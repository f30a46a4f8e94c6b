"""NaN, infinities, zeros of both signs, subnormals, overflow, nothing at all, the narrowest."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of


@of("f32[60]:digits", "f32[60]:digits")
def statistics_that_skip_nan(x: Array, y: Array) -> tuple[Array, ...]:
    z = jnp.sqrt(x) / y
    clean = jnp.nan_to_num(z, nan=-1.0, posinf=1e6, neginf=-1e6)
    return (
        jnp.nanmean(jnp.where(jnp.isinf(z), jnp.nan, z)),
        jnp.nanstd(jnp.where(jnp.isinf(z), jnp.nan, z)),
        jnp.nanmax(z),
        jnp.nanargmin(z),
        jnp.nancumsum(clean),
        jnp.nanquantile(x / x, 0.25),
        jnp.isnan(z).sum(),
    )


@of("f32[50]:digits", "bf16[50]:digits")
def zeros_of_both_signs(x: Array, y: Array) -> tuple[Array, ...]:
    zero = jnp.where(x > 0, 0.0, -0.0) * jnp.abs(x)
    narrow = -jnp.abs(y) * 0
    return (
        jnp.copysign(jnp.float32(1), zero),
        1 / zero,
        jnp.arctan2(zero, -jnp.abs(x)),
        jnp.sqrt(zero),
        jnp.sign(narrow),
        1 / (narrow + 0),
        jnp.maximum(zero, -zero),
        jnp.round(x / 20),
    )


@of("f32[40]:positive", "f16[40]", "bf16[40]")
def near_the_least_normal_numbers(x: Array, y: Array, z: Array) -> tuple[Array, ...]:
    tiny = x * jnp.float32(1.2e-38)
    small = y * jnp.float16(2**-14)
    return (
        tiny,
        tiny * 2,
        tiny / 2 > 0,
        small,
        small.astype(jnp.float32),
        (z * jnp.bfloat16(1e-38)).astype(jnp.float32),
        jnp.exp(-80 - 5 * x),
        jnp.nextafter(small, jnp.zeros_like(small)),
    )


@of("s32[30]", "s32[30]:digits", "s8[30]", "u16[30]")
def overflow_and_division_by_zero(x: Array, y: Array, b: Array, u: Array) -> tuple[Array, ...]:
    lowest = jnp.where(y > 0, jnp.iinfo(jnp.int32).min, x)
    return (
        x * x + y,
        lowest // -1,
        lax.div(x, y),
        lax.rem(x, y),
        x % y,
        jnp.abs(lowest),
        -b - b,
        lax.integer_pow(b, 3),
        u * u - u,
        lax.shift_left(x, y),
        jnp.right_shift(b, 9),
        (x.astype(jnp.float32) * 4).astype(jnp.int32),
        jnp.sum(b, dtype=jnp.int8),
    )


@of("f32[0,5]", "f32[5,0]", "s32[0]", "f32[7]")
def arrays_of_nothing(x: Array, y: Array, at: Array, z: Array) -> tuple[Array, ...]:
    return (
        x.sum(0),
        x.max(0, initial=-jnp.inf),
        y @ x,
        jnp.concatenate([z, x[:, 0]]).prod(),
        z.at[at].add(1),
        jnp.sort(x, 0),
        jnp.take(z, at),
        jnp.all(x > 0),
        jax.nn.softmax(x, axis=0),
    )


@of("f32[]", "s32[]:below5", "bf16[]", "c64[]", "pred[]")
def scalars_of_all_kinds(x: Array, n: Array, y: Array, z: Array, p: Array) -> tuple[Array, ...]:
    return (
        jnp.where(p, x, y),
        x**n,
        jnp.sort(x[None])[0],
        jnp.cumsum(jnp.atleast_1d(y)),
        jnp.abs(z) * jnp.exp(1j * jnp.angle(z)),
        lax.reduce(x[None, None], jnp.float32(1), lax.mul, (0, 1)),
        jnp.linalg.norm(jnp.stack([x, x * 2])),
        lax.dynamic_slice(jnp.arange(6.0), (n,), (2,)),
        y.astype(jnp.float8_e5m2).astype(x.dtype),
        n.astype(bool) ^ p,
    )


@of("f8e4m3fn[12,16]", "f8e5m2[16,10]", "f8e4m3fn[40]", "f32[40]:scaled300")
def numbers_of_eight_bits(a: Array, b: Array, x: Array, y: Array) -> tuple[Array, ...]:
    narrow = y.astype(jnp.float8_e4m3fn)
    return (
        jnp.matmul(a, b.astype(jnp.float8_e4m3fn), preferred_element_type=jnp.float32),
        x + x,
        x * narrow,
        narrow,
        y.astype(jnp.float8_e5m2),
        jnp.maximum(x, narrow),
        jnp.exp(x),
        jnp.cumsum(x),
        (y * 1e3).astype(jnp.float8_e4m3b11fnuz).astype(jnp.float32),
        lax.bitcast_convert_type(narrow, jnp.uint8),
    )


@of("s4[24,8]", "u4[8,10]", "f32[24]:scaled4", "u8[30]")
def numbers_of_four_bits(a: Array, b: Array, x: Array, packed: Array) -> tuple[Array, ...]:
    low, high = (packed & 15).astype(jnp.int4), (packed >> 4).astype(jnp.int4)
    codes = jnp.clip(jnp.round(x), -8, 7).astype(jnp.int4)
    return (
        a.astype(jnp.int8) @ b.astype(jnp.int8),
        a + a,
        jnp.sort(a, 1),
        a.max(1),
        codes,
        -codes,
        jnp.stack([low, high], 1).astype(jnp.int8).reshape(-1) - 8,
        (x / 2).astype(jnp.float4_e2m1fn).astype(jnp.float32),
        a < 0,
    )


@of("c64[20]:digits", "f32[20]:digits")
def complex_infinities_and_cuts(z: Array, x: Array) -> tuple[Array, ...]:
    w = lax.complex(jnp.real(z), jnp.where(x > 0, 0.0, -0.0))
    return (
        jnp.sqrt(w),
        jnp.log(w + 0.5),
        jnp.abs(z / jnp.float32(1e-20)),
        jnp.isfinite(z / (z - z)),
        jnp.angle(w),
        jnp.conj(z) * z,
        jnp.exp(1j * jnp.pi * x.astype(jnp.complex64)),
    )


@of("f16[40]:scaled200", "f16[40]:scaled200", "f32[40]:scaled50")
def overflow_of_half_precision(x: Array, y: Array, z: Array) -> tuple[Array, ...]:
    return (
        x * y,
        x * y - x * y,
        jnp.sum(x * x),
        jnp.hypot(x, y),
        jnp.linalg.norm(x),
        jnp.mean(jnp.abs(x) * 200),
        jnp.exp(z).astype(jnp.float16),
        jax.nn.logsumexp(z * 2),
        jnp.log(jnp.sum(jnp.exp(z))),
        jnp.tanh(x) * jnp.inf,
        jax.nn.softmax(x * y / 1024),
        jnp.clip(jnp.exp(z), 0, 65504).astype(jnp.float16),
    )


@of("f32[30]:digits", "f32[30]:digits")
def gradients_at_kinks_and_poles(x: Array, y: Array) -> tuple[Array, ...]:
    def norm(x: Array) -> Array:
        return jnp.sqrt((x * x * (y > 0)).sum())

    def safe(x: Array) -> Array:
        return jnp.where(x > 0, jnp.log(jnp.where(x > 0, x, 1)), 0).sum()

    return (
        jax.grad(lambda x: jnp.abs(x).sum())(x),
        jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0).sum())(x),
        jax.grad(safe)(x),
        jax.grad(norm)(x * (y > 20)),
        jax.grad(lambda x: jnp.maximum(x, y).sum())(x),
        jax.grad(lambda x: (x ** (y / 3)).sum())(x),
        jax.grad(lambda x: jnp.arctan2(x, y).sum())(x),
    )


@of("s64[20]", "u64[20]", "f64[20]:scaled1000", "f32[20]")
def limits_of_sixty_four_bits(x: Array, u: Array, y: Array, z: Array) -> tuple[Array, ...]:
    huge = y * 1e300
    return (
        x * x,
        x // jnp.where(x % 3 == 0, 0, 7),
        jnp.abs(x) - (x >> 63),
        u // jnp.uint64(10),
        u.astype(jnp.float32),
        x.astype(jnp.float64).astype(jnp.int64) - x,
        (huge * 10).astype(jnp.int64),
        (y * 1e-310) * 2,
        huge.astype(jnp.float32),
        jnp.ldexp(z, 130),
        jnp.frexp(z * 1e-30),
        jnp.sum(x) + jnp.sum(u).astype(jnp.int64),
    )
