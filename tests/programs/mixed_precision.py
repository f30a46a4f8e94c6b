"""Training in mixed precision: casts, losses, optimiser steps, loss scaling, quantisation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of

F8 = jnp.float8_e4m3fn


@of("f32[16,32]", "f32[32,24]", "f32[24]")
def dense_in_bf16_with_master_weights(x: Array, w: Array, b: Array) -> Array:
    y = x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16) + b.astype(jnp.bfloat16)
    return jax.nn.relu(y).astype(jnp.float32)


@of("f32[16,32]", "f32[32,10]", "s32[16]:below10")
def step_with_a_scaled_loss(x: Array, w: Array, labels: Array) -> Array:
    def loss(w: Array) -> Array:
        logits = x.astype(jnp.float16) @ w.astype(jnp.float16)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
        return -chosen.mean().astype(jnp.float32) * 128

    gradient = jax.grad(loss)(w) / 128
    return jnp.where(jnp.isfinite(gradient).all(), w - 0.1 * gradient, w)


@of("bf16[8,40]", "f32[40]", "f32[40]")
def layer_norm_in_f32_of_bf16(x: Array, gain: Array, bias: Array) -> Array:
    wide = x.astype(jnp.float32)
    mean = wide.mean(-1, keepdims=True)
    variance = jnp.square(wide - mean).mean(-1, keepdims=True)
    return ((wide - mean) * lax.rsqrt(variance + 1e-6) * gain + bias).astype(x.dtype)


@of("bf16[8,40]", "f32[40]", "bf16[8,40]")
def gradients_of_rms_norm_in_f32(x: Array, gain: Array, upstream: Array) -> object:
    def norm(x: Array, gain: Array) -> Array:
        wide = x.astype(jnp.float32)
        scale = lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-6)
        return (wide * scale).astype(x.dtype) * gain.astype(x.dtype)

    return jax.vjp(norm, x, gain)[1](upstream)


@of("bf16[10,16]", "bf16[10,16]", "bf16[10,16]")
def softmax_in_f32_of_bf16_scores(q: Array, k: Array, v: Array) -> Array:
    scores = jnp.einsum("qd,kd->qk", q, k, preferred_element_type=jnp.float32) / 4
    return jax.nn.softmax(scores).astype(q.dtype) @ v


@of("f16[12,30]", "s32[12]:below30")
def gradient_of_cross_entropy_f16(logits: Array, labels: Array) -> Array:
    def loss(logits: Array) -> Array:
        chosen = jnp.take_along_axis(logits, labels[:, None], 1)[:, 0]
        return (jax.nn.logsumexp(logits, axis=1) - chosen).mean()

    return jax.grad(loss)(logits)


@of("bf16[12,30]", "s32[12]:below30")
def losses_of_the_hardest(logits: Array, labels: Array) -> Array:
    losses = -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)[:, 0]
    return lax.top_k(losses, 4)[0].mean()


@of("bf16[40]", "bf16[40]:fraction")
def binary_cross_entropy_with_logits(x: Array, y: Array) -> Array:
    return (jnp.maximum(x, 0) - x * y + jnp.log1p(jnp.exp(-jnp.abs(x)))).mean()


@of("f16[60]", "f16[60]")
def huber_and_gradient(x: Array, y: Array) -> tuple[Array, Array]:
    def loss(x: Array) -> Array:
        error = jnp.abs(x - y)
        return jnp.where(error < 1, error * error / 2, error - jnp.float16(0.5)).mean()

    return jax.value_and_grad(loss)(x)


@of("bf16[6,20]", "bf16[6,20]", "bf16[6,20]")
def triplet_loss(anchor: Array, positive: Array, negative: Array) -> Array:
    near = jnp.sqrt(((anchor - positive) ** 2).sum(1) + jnp.bfloat16(1e-3))
    far = jnp.sqrt(((anchor - negative) ** 2).sum(1) + jnp.bfloat16(1e-3))
    return jnp.maximum(near - far + 1, 0).mean()


@of("f16[10,12]", "f16[10,12]")
def divergence_with_temperature(student: Array, teacher: Array) -> Array:
    p = jax.nn.log_softmax(teacher / 2)
    q = jax.nn.log_softmax(student / 2)
    return (jnp.exp(p) * (p - q)).sum(1).mean() * 4


@of("bf16[10,16]", "bf16[10,16]")
def symmetric_contrastive_loss(x: Array, y: Array) -> Array:
    x = x / jnp.linalg.norm(x, axis=1, keepdims=True)
    y = y / jnp.linalg.norm(y, axis=1, keepdims=True)
    logits = x @ y.T * 10
    rows, columns = jax.nn.log_softmax(logits, 1), jax.nn.log_softmax(logits, 0)
    return -(jnp.diagonal(rows) + jnp.diagonal(columns)).mean() / 2


@of("bf16[300]", "bf16[300]", "f32[300]:hundredths", "f32[300]:fraction")
def adam_with_decay_in_two_precisions(w: Array, g: Array, m: Array, v: Array) -> tuple[Array, ...]:
    wide = g.astype(jnp.float32)
    m, v = 0.9 * m + 0.1 * wide, 0.95 * v + 0.05 * wide**2
    update = m / (jnp.sqrt(v) + 1e-8) + 0.01 * w.astype(jnp.float32)
    return (w.astype(jnp.float32) - 1e-3 * update).astype(w.dtype), m, v


@of("bf16[300]", "bf16[300]", "bf16[300]:hundredths", "bf16[300]:fraction")
def adam_all_in_bf16(w: Array, g: Array, m: Array, v: Array) -> tuple[Array, ...]:
    m = jnp.bfloat16(0.9) * m + jnp.bfloat16(0.1) * g
    v = jnp.bfloat16(0.99) * v + jnp.bfloat16(0.01) * g * g
    return w - jnp.bfloat16(1e-2) * m / (jnp.sqrt(v) + jnp.bfloat16(1e-4)), m, v


@of("bf16[200]", "bf16[200]", "bf16[200]")
def lion_step(w: Array, g: Array, m: Array) -> tuple[Array, Array]:
    update = jnp.sign(jnp.bfloat16(0.9) * m + jnp.bfloat16(0.1) * g)
    m = jnp.bfloat16(0.99) * m + jnp.bfloat16(0.01) * g
    return w - jnp.bfloat16(1e-3) * (update + jnp.bfloat16(0.1) * w), m


@of("f16[40,20]", "f16[40,20]:hundredths", "f16[40,20]:fraction")
def layerwise_trust_ratio(w: Array, m: Array, v: Array) -> Array:
    update = m / (jnp.sqrt(v) + jnp.float16(1e-3))
    ratio = jnp.linalg.norm(w.ravel()) / jnp.linalg.norm(update.ravel())
    return w - jnp.float16(0.01) * jnp.where(ratio > 0, ratio, 1) * update


@of("bf16[50]", "bf16[20,10]", "bf16[8]")
def clipped_by_one_norm(a: Array, b: Array, c: Array) -> tuple[Array, ...]:
    norm = jnp.sqrt(sum((x * x).sum() for x in (a, b, c)))
    scale = jnp.minimum(jnp.bfloat16(1), jnp.bfloat16(2.5) / (norm + jnp.bfloat16(1e-6)))
    return a * scale, b * scale, c * scale


@of("bf16[50]", "bf16[20,10]")
def clipped_by_a_norm_in_f32(a: Array, b: Array) -> tuple[Array, Array]:
    norm = jnp.sqrt(sum((x.astype(jnp.float32) ** 2).sum() for x in (a, b)))
    scale = 1.0 / jnp.maximum(norm, 1.0)
    return (a * scale).astype(a.dtype), (b * scale).astype(b.dtype)


@of("f32[24,24]")
def newton_schulz_in_bf16(g: Array) -> Array:
    """An orthogonal matrix near a gradient, as the optimiser Muon has it."""
    x = g.astype(jnp.bfloat16)
    x = x / (jnp.linalg.norm(x) + jnp.bfloat16(1e-7))
    for _ in range(3):
        square = x @ x.T
        x = (
            jnp.bfloat16(3.4445) * x
            + (jnp.bfloat16(-4.775) * square + jnp.bfloat16(2.0315) * square @ square) @ x
        )
    return x


@of("bf16[100]", "f32[100]")
def moving_average_of_weights(w: Array, average: Array) -> Array:
    return average * 0.999 + w.astype(jnp.float32) * (1 - 0.999)


@of("f32[20,64]")
def quantised_by_rows_to_int8(x: Array) -> tuple[Array, Array, Array]:
    scale = jnp.abs(x).max(1, keepdims=True) / 127
    q = jnp.clip(jnp.round(x / scale), -127, 127).astype(jnp.int8)
    return q, scale, q.astype(jnp.float32) * scale


@of("bf16[20,64]")
def quantised_with_a_zero_point(x: Array) -> tuple[Array, Array]:
    low, high = x.min(), x.max()
    scale = (high - low) / 255
    zero = jnp.round(-low / scale)
    q = jnp.clip(jnp.round(x / scale) + zero, 0, 255).astype(jnp.uint8)
    return q, (q.astype(x.dtype) - zero) * scale


@of("f16[8,64]", "f16[64,16]")
def int8_product_with_scales(x: Array, w: Array) -> Array:
    sx = jnp.abs(x).max(1, keepdims=True) / 127
    sw = jnp.abs(w).max(0, keepdims=True) / 127
    qx, qw = jnp.round(x / sx).astype(jnp.int8), jnp.round(w / sw).astype(jnp.int8)
    product = jnp.matmul(qx, qw, preferred_element_type=jnp.int32)
    return product.astype(jnp.float32) * sx.astype(jnp.float32) * sw.astype(jnp.float32)


@of("bf16[32,16]")
def quantised_to_four_bits_by_blocks(w: Array) -> Array:
    blocks = w.reshape(8, 4, 16)
    scale = jnp.abs(blocks).max(1, keepdims=True) / 7
    q = jnp.clip(jnp.round(blocks / scale), -8, 7).astype(jnp.int4)
    return (q.astype(jnp.bfloat16) * scale).reshape(w.shape)


@of("bf16[8,32]", "bf16[32,8]")
def f8_product_with_scales(x: Array, w: Array) -> Array:
    sx = jnp.abs(x).max().astype(jnp.float32) / 448
    sw = jnp.abs(w).max().astype(jnp.float32) / 448
    fx = (x.astype(jnp.float32) / sx).astype(F8)
    fw = (w.astype(jnp.float32) / sw).astype(F8)
    product = jnp.matmul(fx, fw, preferred_element_type=jnp.float32)
    return (product * sx * sw).astype(jnp.bfloat16)


@of("f32[200]:scaled3")
def through_narrow_types_and_back(x: Array) -> tuple[Array, ...]:
    types = (jnp.bfloat16, jnp.float16, F8, jnp.float8_e5m2)
    return tuple((x.astype(t) * t(1.5)).astype(jnp.float32) + x for t in types)


@of("f32[200]")
def residual_of_rounding_to_bf16(x: Array) -> tuple[Array, Array]:
    high = x.astype(jnp.bfloat16)
    low = (x - high.astype(jnp.float32)).astype(jnp.bfloat16)
    return low, high.astype(jnp.float32) + low.astype(jnp.float32)


@of("f32[12,16]", "f32[16,12]")
def product_of_three_bf16_passes(x: Array, y: Array) -> Array:
    def parts(a: Array) -> tuple[Array, Array]:
        high = a.astype(jnp.bfloat16)
        return high, (a - high.astype(jnp.float32)).astype(jnp.bfloat16)

    def product(a: Array, b: Array) -> Array:
        return jnp.matmul(a, b, preferred_element_type=jnp.float32)

    (xh, xl), (yh, yl) = parts(x), parts(y)
    return product(xh, yl) + product(xl, yh) + product(xh, yh)


@of("f32[300]", "u16[300]")
def rounded_stochastically_to_bf16(x: Array, noise: Array) -> Array:
    bits = lax.bitcast_convert_type(x, jnp.uint32) + noise.astype(jnp.uint32)
    return lax.bitcast_convert_type((bits >> 16).astype(jnp.uint16), jnp.bfloat16)


@of("bf16[100]", "bf16[100]")
def addition_with_compensation(w: Array, update: Array) -> tuple[Array, Array]:
    total = w + update * jnp.bfloat16(1e-2)
    lost = (w - total) + update * jnp.bfloat16(1e-2)
    return total, lost


@of("f16[16,20]", "f16[20,8]", "f16[16,8]")
def step_of_a_net_in_f16(x: Array, w: Array, target: Array) -> Array:
    def loss(w: Array) -> Array:
        return ((jnp.tanh(x @ w / 4) - target) ** 2).mean()

    return w - jnp.float16(0.1) * jax.grad(loss)(w)


@of("bf16[16,20]", "bf16[20,30]", "bf16[30,8]", "s32[16]:below8")
def gradients_with_recomputation(x: Array, w: Array, v: Array, labels: Array) -> object:
    @jax.checkpoint
    def hidden(x: Array, w: Array) -> Array:
        return jax.nn.gelu(x @ w / 4)

    def loss(w: Array, v: Array) -> Array:
        scores = jax.nn.log_softmax(hidden(x, w) @ v)
        return -jnp.take_along_axis(scores, labels[:, None], 1).mean()

    return jax.grad(loss, (0, 1))(w, v)


@of("bf16[4,6,16]", "bf16[16,16]", "s32[4,6]:below2")
def masked_mean_of_layer_outputs(x: Array, w: Array, mask: Array) -> Array:
    y = jnp.tanh(x @ w)
    weights = mask.astype(x.dtype)
    return (y * weights[..., None]).sum(1) / jnp.maximum(weights.sum(1), 1)[:, None]


@of("f32[12,16]", "bf16[16,16]", "bf16[16]")
def mixed_chain_of_casts(x: Array, w: Array, b: Array) -> Array:
    y = (x.astype(jnp.bfloat16) @ w).astype(jnp.float32) * 0.5
    z = (y.astype(jnp.float16) + b.astype(jnp.float16)).astype(jnp.bfloat16)
    return (z * z).astype(jnp.float32) - y


@of("s8[200]", "bf16[200]")
def dequantised_and_clamped(q: Array, x: Array) -> Array:
    return jnp.clip(q.astype(jnp.bfloat16) * jnp.bfloat16(0.05) + x, -2, 2)


@of("bf16[10,20]", "bf16[10,20]")
def gradients_through_min_max_and_abs(x: Array, y: Array) -> object:
    def loss(x: Array, y: Array) -> Array:
        return (jnp.maximum(x, y) * jnp.abs(x - y) + jnp.minimum(x, 0.5 * y)).sum()

    return jax.grad(loss, (0, 1))(x, y)


@of("f16[5,5]", "f16[5]")
def jacobian_of_a_layer(w: Array, x: Array) -> Array:
    return jax.jacfwd(lambda x: jax.nn.softmax(w @ x))(x)


@of("bf16[6,6]", "bf16[6]")
def hessian_of_log_sum_exp(w: Array, x: Array) -> Array:
    return jax.hessian(lambda x: jax.nn.logsumexp(w @ x))(x)


@of("bf16[40]")
def fake_quantised_with_straight_gradient(x: Array) -> Array:
    def rounded(x: Array) -> Array:
        return x + lax.stop_gradient(jnp.round(x * 8) / 8 - x)

    return jax.grad(lambda x: (rounded(x) ** 2).sum())(x)


@of("f16[10]:positive", "f16[10]:positive")
def gaussian_likelihood_and_gradient(x: Array, scale: Array) -> object:
    def loss(x: Array, scale: Array) -> Array:
        return (jnp.log(scale) + (x / scale) ** 2 / 2).mean()

    return jax.value_and_grad(loss, (0, 1))(x, scale)
