"""Reductions, pooling and models in f16 and bf16."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of


@of("f16[64,256]", "bf16[64,256]")
def sums_of_rows(x: Array, y: Array) -> tuple[Array, Array]:
    return x.sum(1), y.sum(1)


@of("f16[256,64]", "bf16[256,64]")
def sums_of_columns(x: Array, y: Array) -> tuple[Array, Array]:
    return x.sum(0), y.sum(0)


@of("bf16[64,256]:fraction")
def mean_and_variance(x: Array) -> tuple[Array, Array]:
    return x.mean(1), x.var(1)


@of("f16[64,256]")
def standard_deviation_of_f16(x: Array) -> Array:
    return x.std(0)


@of("bf16[4,16,16,8]")
def average_pooling_bf16(x: Array) -> Array:
    return lax.reduce_window(x, jnp.bfloat16(0), lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4


@of("f16[4,16,16,8]")
def overlapping_pooling_f16(x: Array) -> Array:
    return lax.reduce_window(x, jnp.float16(0), lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME")


@of("bf16[32,100]")
def cumulative_sum_bf16(x: Array) -> Array:
    return jnp.cumsum(x, axis=1)


@of("f16[1000]:fraction")
def cumulative_sum_f16(x: Array) -> Array:
    return jnp.cumsum(x)


@of("bf16[64]:positive")
def cumulative_product_bf16(x: Array) -> Array:
    return jnp.cumprod(x[:12])


@of("bf16[128,32]", "bf16[32,16]", "bf16[16]")
def bias_gradient_bf16(x: Array, w: Array, b: Array) -> tuple[Array, Array]:
    return jax.grad(lambda w, b: jnp.tanh(x @ w + b).sum(), argnums=(0, 1))(w, b)


@of("bf16[16,64]", "bf16[64]", "bf16[64]")
def layer_norm_bf16(x: Array, gain: Array, bias: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    return centred * lax.rsqrt(variance + 1e-5) * gain + bias


@of("f16[16,64]", "f16[64]")
def gradient_of_layer_norm_f16(x: Array, gain: Array) -> Array:
    def loss(x: Array) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        return (centred / jnp.sqrt(x.var(-1, keepdims=True) + 1e-3) * gain).sum()

    return jax.grad(loss)(x * 1)


@of("bf16[2,16,32]", "bf16[32,32]", "bf16[32,32]", "bf16[32,32]")
def attention_bf16(x: Array, wq: Array, wk: Array, wv: Array) -> Array:
    q, k, v = x @ wq, x @ wk, x @ wv
    scores = jnp.einsum("bqd,bkd->bqk", q, k) / jnp.sqrt(jnp.bfloat16(32)) / 32
    return jax.nn.softmax(scores) @ v


@of("f16[2,16,8]", "f16[2,16,8]", "f16[2,16,8]")
def causal_attention_f16(q: Array, k: Array, v: Array) -> Array:
    scores = jnp.einsum("bqd,bkd->bqk", q, k) * jnp.float16(8**-0.5)
    scores = jnp.where(jnp.tril(jnp.ones((16, 16), bool)), scores, jnp.float16(-6e4))
    return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores), v)


@of("bf16[500]", "s32[500]:below20")
def segment_sum_bf16(x: Array, segments: Array) -> Array:
    return jax.ops.segment_sum(x, segments, num_segments=20)


@of("f16[2000]:fraction", "s32[2000]:below4")
def long_segments_f16(x: Array, segments: Array) -> Array:
    return jax.ops.segment_sum(x, segments, num_segments=4)


@of("bf16[32,64]")
def softmax_bf16(x: Array) -> Array:
    return jax.nn.softmax(x)


@of("f16[32,64]")
def log_softmax_f16(x: Array) -> Array:
    return jax.nn.log_softmax(x)


@of("bf16[1000]")
def gelu_bf16(x: Array) -> Array:
    return jax.nn.gelu(x)


@of("f16[1000]:scaled3")
def exponential_chain_f16(x: Array) -> Array:
    return jnp.log1p(jnp.exp(-jnp.abs(x))) + jnp.maximum(x, 0)


@of("bf16[64,64]", "bf16[64,64]")
def matmul_bf16(x: Array, y: Array) -> Array:
    return x @ y


@of("f16[64,64]", "f16[64,64]")
def matmul_f16_in_f32(x: Array, y: Array) -> Array:
    return jnp.matmul(x, y, preferred_element_type=jnp.float32)


@of("bf16[4,12,12,3]", "bf16[3,3,3,8]")
def convolution_bf16(x: Array, w: Array) -> Array:
    dimensions = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=dimensions)


@of("bf16[64,32]:fraction", "s32[64]:below32")
def cross_entropy_bf16(logits: Array, labels: Array) -> Array:
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
    return -chosen.mean()


@of("bf16[256]", "bf16[256]")
def norm_and_dot_bf16(x: Array, y: Array) -> tuple[Array, Array, Array]:
    return jnp.linalg.norm(x), jnp.dot(x, y), jnp.vdot(x, x) / 256


@of("bf16[20,32]", "bf16[32,32]:hundredths")
def recurrent_bf16(xs: Array, w: Array) -> Array:
    def step(h: Array, x: Array) -> tuple[Array, Array]:
        h = jnp.tanh(x + h @ w)
        return h, h

    return lax.scan(step, jnp.zeros(32, jnp.bfloat16), xs)[1]


@of("bf16[100,10]")
def exponential_moving_average_bf16(x: Array) -> Array:
    def step(mean: Array, row: Array) -> tuple[Array, Array]:
        mean = jnp.bfloat16(0.9) * mean + jnp.bfloat16(0.1) * row
        return mean, mean

    return lax.scan(step, x[0], x)[1]


@of("f16[128,64]")
def batch_norm_f16(x: Array) -> Array:
    mean, variance = x.mean(0), (x * x).mean(0) - x.mean(0) ** 2
    return (x - mean) / jnp.sqrt(variance + jnp.float16(1e-3))


@of("f16[4096]", "bf16[4096]")
def maxima_and_arguments(x: Array, y: Array) -> tuple[Array, ...]:
    return x.max(), y.min(), x.argmax(), y.argmin(), jnp.median(x)


@of("bf16[30000]:fraction")
def long_mean_bf16(x: Array) -> Array:
    return x.mean()
