"""Quantisation to int8, int4 and f8, and back."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of

_E4, _E5 = jnp.float8_e4m3fn, jnp.float8_e5m2


def _int8(x: Array, axis: int = -1) -> tuple[Array, Array]:
    scale = jnp.max(jnp.abs(x), axis, keepdims=True) / 127
    return jnp.clip(jnp.round(x / scale), -127, 127).astype(jnp.int8), scale


def _f8(x: Array, kind: type = _E4) -> tuple[Array, Array]:
    scale = jnp.max(jnp.abs(x)) / float(jnp.finfo(kind).max)
    return (x / scale).astype(kind), scale


@of("f32[8,32]", "f32[32,12]")
def int8_product_by_rows_and_columns(x: Array, w: Array) -> Array:
    (qx, sx), (qw, sw) = _int8(x), _int8(w, 0)
    y = lax.dot(qx, qw, preferred_element_type=jnp.int32)
    return y.astype(jnp.float32) * sx * sw


@of("bf16[8,32]", "bf16[32,12]")
def int8_product_of_bf16_with_bf16_scales(x: Array, w: Array) -> Array:
    (qx, sx), (qw, sw) = _int8(x), _int8(w, 0)
    y = lax.dot(qx, qw, preferred_element_type=jnp.int32)
    return (y.astype(jnp.float32) * sx.astype(jnp.float32) * sw.astype(jnp.float32)).astype(x.dtype)


@of("f32[6,16]", "f32[16,8]")
def zero_points_of_activations(x: Array, w: Array) -> Array:
    low, high = jnp.minimum(x.min(), 0), jnp.maximum(x.max(), 0)
    scale = (high - low) / 255
    zero = jnp.round(-low / scale)
    q = jnp.clip(jnp.round(x / scale) + zero, 0, 255).astype(jnp.uint8)
    qw, sw = _int8(w, 0)
    y = lax.dot(q.astype(jnp.int32), qw.astype(jnp.int32))
    y = y - zero.astype(jnp.int32) * qw.astype(jnp.int32).sum(0)
    return y.astype(jnp.float32) * scale * sw


@of("f32[8,64]")
def blocks_of_int4_with_f16_scales(w: Array) -> object:
    blocks = w.reshape(8, 4, 16)
    scale = (jnp.max(jnp.abs(blocks), -1, keepdims=True) / 7).astype(jnp.float16)
    q = jnp.clip(jnp.round(blocks / scale.astype(jnp.float32)), -8, 7).astype(jnp.int4)
    back = (q.astype(jnp.float16) * scale).reshape(8, 64)
    return q.astype(jnp.int8), back, jnp.abs(back.astype(jnp.float32) - w).max()


@of("u8[8,32]", "f16[8,4]:fraction", "bf16[64,6]")
def unpacked_nibbles_times_activations(packed: Array, scale: Array, x: Array) -> Array:
    low, high = packed & 15, packed >> 4
    q = jnp.stack([low, high], -1).reshape(8, 64).astype(jnp.int32) - 8
    w = (q.reshape(8, 4, 16) * scale[..., None].astype(jnp.float32)).reshape(8, 64)
    return w.astype(jnp.bfloat16) @ x


@of("f32[8,24]", "f32[24,10]")
def product_in_f8_of_both_kinds(x: Array, w: Array) -> Array:
    (qx, sx), (qw, sw) = _f8(x, _E4), _f8(w, _E5)
    y = qx.astype(jnp.bfloat16) @ qw.astype(jnp.bfloat16)
    return y.astype(jnp.float32) * sx * sw


@of("f32[8,24]", "f32[24,10]")
def product_of_f8_summed_in_f32(x: Array, w: Array) -> Array:
    (qx, sx), (qw, sw) = _f8(x), _f8(w)
    y = lax.dot_general(qx, qw, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32)
    return y * (sx * sw)


@of("bf16[8,16]", "bf16[16,12]", "bf16[8,12]", "f32[4]:positive")
def f8_layer_with_delayed_scales(x: Array, w: Array, up: Array, history: Array) -> object:
    scale = history.max() / 448

    @jax.custom_vjp
    def layer(x: Array, w: Array) -> Array:
        return ahead(x, w)[0]

    def cast(x: Array, kind: type) -> Array:
        top = float(jnp.finfo(kind).max)
        return jnp.clip(x.astype(jnp.float32) / scale, -top, top).astype(kind)

    def ahead(x: Array, w: Array) -> tuple[Array, tuple[Array, Array]]:
        qx, qw = cast(x, _E4), cast(w, _E4)
        y = qx.astype(jnp.bfloat16) @ qw.astype(jnp.bfloat16)
        return (y.astype(jnp.float32) * scale * scale).astype(jnp.bfloat16), (qx, qw)

    def back(kept: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
        q = cast(g, _E5).astype(jnp.bfloat16)
        x, w = (k.astype(jnp.bfloat16) for k in kept)
        both = (q @ w.T, x.T @ q)
        return tuple((d.astype(jnp.float32) * scale**2).astype(jnp.bfloat16) for d in both)

    layer.defvjp(ahead, back)
    y, pull = jax.vjp(layer, x, w)
    moved = jnp.roll(history, 1).at[0].set(jnp.abs(x).max().astype(jnp.float32))
    return y, pull(up), moved


@of("f32[200]:scaled30")
def through_f8_types_and_int8(x: Array) -> object:
    kinds = (_E4, _E5, jnp.float8_e4m3b11fnuz, jnp.float8_e5m2fnuz)
    floats = [x.astype(k).astype(jnp.float32) for k in kinds]
    return floats, x.astype(jnp.int8), jnp.rint(x).astype(jnp.uint8), jnp.trunc(x).astype(jnp.int16)


@of("f32[4,32]")
def shared_exponents_of_blocks(x: Array) -> object:
    top = jnp.max(jnp.abs(x.reshape(4, 2, 16)), -1, keepdims=True)
    _, exponent = jnp.frexp(top)
    q = jnp.round(jnp.ldexp(x.reshape(4, 2, 16), 6 - exponent))
    q = jnp.clip(q, -127, 127).astype(jnp.int8)
    return q, jnp.ldexp(q.astype(jnp.float32), exponent - 6).reshape(4, 32)


@of("f32[40]", "f32[]:positive", "f32[40]")
def learned_step_with_gradient(x: Array, step: Array, up: Array) -> object:
    def rounded(v: Array) -> Array:
        return v + lax.stop_gradient(jnp.round(v) - v)

    def quantised(x: Array, step: Array) -> Array:
        return rounded(jnp.clip(x / step, -4, 3)) * step

    return jax.vjp(quantised, x, step)[1](up)


@of("f32[6,8]", "f32[8,8]", "f32[8,4]")
def network_of_int8_requantised_by_shifts(x: Array, w1: Array, w2: Array) -> Array:
    def fixed(scale: Array) -> tuple[Array, Array]:
        fraction, exponent = jnp.frexp(scale)
        return jnp.round(fraction * 2**15).astype(jnp.int32), 15 - exponent

    (qx, sx), (q1, s1), (q2, s2) = (_int8(a.reshape(1, -1)) for a in (x, w1, w2))
    h = lax.dot(qx.reshape(6, 8), q1.reshape(8, 8), preferred_element_type=jnp.int32)
    multiplier, shift = fixed((sx * s1 * 10)[0, 0])
    h = (h * multiplier + (1 << (shift - 1))) >> shift
    h = jnp.clip(h, 0, 127).astype(jnp.int8)
    y = lax.dot(h, q2.reshape(8, 4), preferred_element_type=jnp.int32)
    return y.astype(jnp.float32) * s2[0, 0] / 10


@of("f16[6,16]", "f16[16,8]")
def smoothed_scales_between_weights_and_inputs(x: Array, w: Array) -> Array:
    s = jnp.sqrt(jnp.abs(x).max(0) / jnp.abs(w).max(1))
    (qx, sx), (qw, sw) = (
        _int8((x / s).astype(jnp.float32)),
        _int8((w * s[:, None]).astype(jnp.float32), 0),
    )
    y = lax.dot(qx, qw, preferred_element_type=jnp.int32)
    return (y.astype(jnp.float32) * sx * sw).astype(jnp.float16)


@of("bf16[2,6,8]", "bf16[2,20,8]", "bf16[2,20,8]")
def attention_to_keys_of_f8(q: Array, k: Array, v: Array) -> Array:
    (qk, sk), (qv, sv) = _f8(k.astype(jnp.float32)), _f8(v.astype(jnp.float32))
    scores = jnp.einsum("hqd,hkd->hqk", q, qk.astype(q.dtype)).astype(jnp.float32) * sk / 8**0.5
    p = jax.nn.softmax(scores).astype(q.dtype)
    return (jnp.einsum("hqk,hkd->hqd", p, qv.astype(q.dtype)) * sv).astype(q.dtype)


@of("s8[5,12]", "f32[5,1]:fraction", "bf16[12]", "bf16[12]")
def dequantised_into_a_norm(q: Array, scale: Array, gain: Array, bias: Array) -> Array:
    x = (q.astype(jnp.float32) * scale).astype(jnp.bfloat16)
    mean = x.mean(-1, keepdims=True)
    var = jnp.mean((x - mean) ** 2, -1, keepdims=True)
    return (x - mean) / jnp.sqrt(var + 1e-3) * gain + bias


@of("s8[2,8,8,3]", "s8[3,3,3,4]", "f32[4]:fraction")
def convolution_of_int8_requantised(x: Array, w: Array, scale: Array) -> Array:
    y = lax.conv_general_dilated(
        x.astype(jnp.int32),
        w.astype(jnp.int32),
        (1, 1),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    return jnp.clip(jnp.round(y * scale / 1000), -128, 127).astype(jnp.int8)
