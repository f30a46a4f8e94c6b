"""Layers in f16 and bf16 and their gradients: norms, softmaxes, attention, pooling."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of


def _rms(x: Array, gain: Array, epsilon: float = 1e-5) -> Array:
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + jnp.asarray(epsilon, x.dtype)) * gain


@of("bf16[8,64]", "bf16[64]", "bf16[8,64]")
def backward_of_rms_norm(x: Array, gain: Array, upstream: Array) -> tuple[Array, ...]:
    return tuple(jax.vjp(_rms, x, gain)[1](upstream))


@of("f16[8,48]", "f16[48]", "f16[8,48]")
def backward_of_rms_norm_f16(x: Array, gain: Array, upstream: Array) -> tuple[Array, ...]:
    return tuple(jax.vjp(_rms, x, gain)[1](upstream))


@of("bf16[4,8,8,16]", "bf16[16]", "bf16[16]")
def group_norm_of_images(x: Array, gain: Array, bias: Array) -> Array:
    groups = x.reshape(4, 8, 8, 4, 4)
    mean = groups.mean((1, 2, 4), keepdims=True)
    variance = groups.var((1, 2, 4), keepdims=True)
    normalised = (groups - mean) * lax.rsqrt(variance + jnp.bfloat16(1e-4))
    return normalised.reshape(x.shape) * gain + bias


@of("f16[6,10,12]")
def instance_norm(x: Array) -> Array:
    return (x - x.mean(1, keepdims=True)) / (x.std(1, keepdims=True) + jnp.float16(1e-2))


@of("bf16[16,32]", "bf16[32,32]")
def spectral_norm_step(u: Array, w: Array) -> tuple[Array, Array]:
    v = u[0] @ w
    v = v / (jnp.linalg.norm(v) + jnp.bfloat16(1e-3))
    sigma = v @ (w @ v)
    return v, w / sigma


@of("bf16[32,40]", "bf16[40]")
def weight_norm(w: Array, scale: Array) -> Array:
    return w / jnp.sqrt((w * w).sum(0)) * scale


@of("f16[8,100]")
def softmax_with_temperature(x: Array) -> Array:
    return jax.nn.softmax(x / jnp.float16(0.7), axis=-1)


@of("bf16[64,12]")
def softmax_over_columns(x: Array) -> Array:
    return jax.nn.softmax(x, axis=0)


@of("bf16[12,50]", "bf16[12,50]")
def backward_of_softmax(x: Array, upstream: Array) -> Array:
    y = jax.nn.softmax(x)
    return y * (upstream - (y * upstream).sum(-1, keepdims=True))


@of("f16[12,50]", "f16[12,50]")
def backward_of_log_softmax(x: Array, upstream: Array) -> Array:
    return jax.vjp(jax.nn.log_softmax, x)[1](upstream)[0]


@of("bf16[10,33]")
def softmax_of_one_more(x: Array) -> Array:
    """A softmax that may attend to nothing: one more zero in the sum."""
    top = jnp.maximum(x.max(-1, keepdims=True), 0)
    powers = jnp.exp(x - top)
    return powers / (powers.sum(-1, keepdims=True) + jnp.exp(-top))


@of("f16[10,32]")
def sparsemax(x: Array) -> Array:
    ordered = -jnp.sort(-x, axis=-1)
    sums = jnp.cumsum(ordered, axis=-1)
    counts = jnp.arange(1, 33, dtype=x.dtype)
    size = (ordered * counts + 1 > sums).sum(-1, keepdims=True)
    threshold = (jnp.take_along_axis(sums, size - 1, -1) - 1) / size.astype(x.dtype)
    return jnp.maximum(x - threshold, 0)


@of("bf16[9,40]")
def log_sum_exp_of_bf16(x: Array) -> Array:
    return jax.nn.logsumexp(x, axis=1)


@of("f16[9,40]:scaled4")
def gradient_of_log_sum_exp(x: Array) -> Array:
    return jax.grad(lambda x: jax.nn.logsumexp(x, axis=1).sum())(x)


@of("bf16[2,4,12,16]", "bf16[2,2,12,16]", "bf16[2,2,12,16]")
def grouped_queries(q: Array, k: Array, v: Array) -> Array:
    q = q.reshape(2, 2, 2, 12, 16)
    scores = jnp.einsum("bghqd,bgkd->bghqk", q, k) * jnp.bfloat16(0.25)
    return jnp.einsum("bghqk,bgkd->bghqd", jax.nn.softmax(scores), v)


@of("bf16[2,10,16]", "bf16[2,10,16]", "bf16[2,10,16]", "s32[2]:below10")
def attention_with_lengths(q: Array, k: Array, v: Array, lengths: Array) -> Array:
    scores = jnp.einsum("bqd,bkd->bqk", q, k) / 4
    valid = jnp.arange(10)[None, None] <= lengths[:, None, None]
    return jax.nn.softmax(jnp.where(valid, scores, -jnp.inf)) @ v


@of("bf16[12,16]", "bf16[12,16]", "bf16[12,16]", "bf16[12,16]")
def gradients_of_causal_attention(q: Array, k: Array, v: Array, upstream: Array) -> object:
    def attend(q: Array, k: Array, v: Array) -> Array:
        scores = jnp.where(jnp.tri(12, dtype=bool), q @ k.T / 4, jnp.bfloat16(-1e9))
        return jax.nn.softmax(scores) @ v

    return jax.vjp(attend, q, k, v)[1](upstream)


@of("f16[3,16,8]", "f16[3,16,8]", "f16[3,16,8]")
def windowed_attention(q: Array, k: Array, v: Array) -> Array:
    distance = jnp.arange(16)[:, None] - jnp.arange(16)
    near = (distance >= 0) & (distance < 4)
    scores = jnp.where(near, q @ k.swapaxes(1, 2) / 3, jnp.finfo(jnp.float16).min)
    return jax.nn.softmax(scores) @ v


@of("bf16[4,14,8]", "bf16[4,14,8]", "bf16[4,14,8]")
def attention_with_linear_bias(q: Array, k: Array, v: Array) -> Array:
    slopes = 2.0 ** -jnp.arange(1, 5, dtype=jnp.bfloat16)
    distance = (jnp.arange(14)[None, :] - jnp.arange(14)[:, None]).astype(jnp.bfloat16)
    scores = q @ k.swapaxes(1, 2) / 3 + slopes[:, None, None] * distance
    return jax.nn.softmax(jnp.where(distance > 0, -jnp.inf, scores)) @ v


@of("bf16[16,8]", "bf16[16,8]", "bf16[16,8]")
def linear_attention(q: Array, k: Array, v: Array) -> Array:
    def step(state: Array, row: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        q, k, v = row
        state = state + jnp.outer(k, v)
        return state, q @ state

    features = jax.nn.elu(q) + 1, jax.nn.elu(k) + 1, v
    return lax.scan(step, jnp.zeros((8, 8), jnp.bfloat16), features)[1]


@of("f16[6,10,16]", "s32[10]:below500")
def rotary_by_halves(x: Array, positions: Array) -> Array:
    rates = 10000 ** (-jnp.arange(0, 16, 2, dtype=jnp.float32) / 16)
    angles = positions[:, None].astype(jnp.float32) * rates
    cosines, sines = jnp.cos(angles).astype(x.dtype), jnp.sin(angles).astype(x.dtype)
    first, second = x[..., :8], x[..., 8:]
    turned = first * cosines - second * sines, second * cosines + first * sines
    return jnp.concatenate(turned, -1)


@of("bf16[5,16]", "bf16[16,24]", "bf16[16,24]", "bf16[24,16]")
def gated_layer_by_silu(x: Array, w: Array, v: Array, out: Array) -> Array:
    return (jax.nn.silu(x @ w) * (x @ v)) @ out


@of("f16[600]:scaled3")
def gradient_of_gelu(x: Array) -> Array:
    return jax.grad(lambda x: jax.nn.gelu(x, approximate=False).sum())(x)


@of("bf16[600]:scaled3")
def gradient_of_silu(x: Array) -> Array:
    return jax.grad(lambda x: jax.nn.silu(x).sum())(x)


@of("f16[500]:scaled2")
def quick_gelu_and_hard_swish(x: Array) -> tuple[Array, Array]:
    return x * jax.nn.sigmoid(jnp.float16(1.702) * x), jax.nn.hard_swish(x)


@of("bf16[500]:scaled2")
def error_functions_of_bf16(x: Array) -> tuple[Array, Array]:
    return lax.erf(x), lax.erfc(x)


@of("f16[500]:scaled4")
def softplus_and_mish_of_f16(x: Array) -> tuple[Array, Array]:
    return jax.nn.softplus(x), x * jnp.tanh(jax.nn.softplus(x))


@of("bf16[20,64]")
def two_formulas_of_variance(x: Array) -> tuple[Array, Array]:
    mean = x.mean(1, keepdims=True)
    return ((x - mean) ** 2).mean(1), (x * x).mean(1) - mean[:, 0] ** 2


@of("f16[20,64]:scaled8")
def kurtosis_and_skew(x: Array) -> tuple[Array, Array]:
    z = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
    return (z**3).mean(1), (z**4).mean(1) - 3


@of("bf16[2,12,12,4]")
def pooling_by_overlapping_means(x: Array) -> Array:
    def summed(x: Array) -> Array:
        return lax.reduce_window(x, jnp.bfloat16(0), lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")

    return summed(x) / summed(jnp.ones_like(x))


@of("f16[2,12,12,4]")
def gradient_of_pooling_by_maxima(x: Array) -> Array:
    def pooled(x: Array) -> Array:
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    return jax.grad(lambda x: (pooled(x) ** 2).sum())(x)


@of("f16[2,8,8,6]", "f16[3,3,1,6]")
def depthwise_convolution_f16(x: Array, w: Array) -> Array:
    names = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=names, feature_group_count=6
    )


@of("bf16[2,9,9,3]", "bf16[3,3,3,4]")
def gradients_of_strided_convolution(x: Array, w: Array) -> object:
    def loss(x: Array, w: Array) -> Array:
        names = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=names)
        return jnp.tanh(y).sum()

    return jax.grad(loss, (0, 1))(x, w)


@of("bf16[3,20,8]", "bf16[4,8,8]", "bf16[8]")
def causal_convolution_of_steps(x: Array, w: Array, bias: Array) -> Array:
    padded = jnp.pad(x, ((0, 0), (3, 0), (0, 0)))
    names = ("NHC", "HIO", "NHC")
    return lax.conv_general_dilated(padded, w, (1,), "VALID", dimension_numbers=names) + bias


@of("f16[2,6,6,4]", "f16[3,3,4,2]")
def transposed_convolution_f16(x: Array, w: Array) -> Array:
    return lax.conv_transpose(x, w, (2, 2), "SAME")


@of("bf16[6,24]", "bf16[24,24]", "bf16[24]", "bf16[24]")
def residual_layers(x: Array, w: Array, gain: Array, bias: Array) -> Array:
    for _ in range(3):
        centred = x - x.mean(-1, keepdims=True)
        y = centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + jnp.bfloat16(1e-5))
        x = x + jax.nn.relu((y * gain + bias) @ w)
    return x


@of("bf16[8,16]", "bf16[16,4]", "bf16[4,16,16]")
def experts_by_top_two(x: Array, router: Array, experts: Array) -> Array:
    weights, chosen = lax.top_k(jax.nn.softmax(x @ router), 2)
    weights = weights / weights.sum(-1, keepdims=True)
    each = jnp.einsum("td,edf->tef", x, experts)
    taken = jnp.take_along_axis(each, chosen[..., None], axis=1)
    return (taken * weights[..., None]).sum(1)


@of("f16[12,8]", "f16[8]", "f16[8]", "f16[8]", "f16[8]")
def batch_norm_for_inference(x: Array, m: Array, v: Array, gain: Array, bias: Array) -> Array:
    return (x - m) / jnp.sqrt(v * v + jnp.float16(1e-3)) * gain + bias


@of("bf16[30,16]")
def cosine_similarities(x: Array) -> Array:
    unit = x / jnp.linalg.norm(x, axis=1, keepdims=True)
    return unit @ unit.T


@of("f16[4,64]")
def standardised_twice(x: Array) -> Array:
    for _ in range(2):
        x = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True))
    return x
