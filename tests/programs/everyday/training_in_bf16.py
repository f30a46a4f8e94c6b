"""Training steps of networks in bf16 and f16, with their gradients."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of

_BF16 = jnp.bfloat16
_F16 = jnp.float16


def _layer_norm(x: Array, gain: Array, bias: Array) -> Array:
    mean = jnp.mean(x, -1, keepdims=True)
    variance = jnp.var(x, -1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * gain + bias


def _rms_norm(x: Array, gain: Array) -> Array:
    wide = x.astype(jnp.float32)
    scale = lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)
    return (wide * scale).astype(x.dtype) * gain


def _attention(q: Array, k: Array, v: Array, causal: bool = True) -> Array:
    n, d = q.shape[-2:]
    scores = jnp.einsum("...qd,...kd->...qk", q, k) / jnp.sqrt(d).astype(q.dtype)
    if causal:
        mask = jnp.tril(jnp.ones((n, n), bool))
        scores = jnp.where(mask, scores, jnp.finfo(scores.dtype).min)
    return jnp.einsum("...qk,...kd->...qd", jax.nn.softmax(scores, -1), v)


def _cross_entropy(logits: Array, labels: Array) -> Array:
    logs = jax.nn.log_softmax(logits.astype(jnp.float32))
    return -jnp.take_along_axis(logs, labels[:, None], 1).mean()


@of("bf16[8,16]", "bf16[16,32]", "bf16[32,10]", "s32[8]:below10")
def sgd_step_of_a_perceptron_in_bf16(
    x: Array, w1: Array, w2: Array, labels: Array
) -> tuple[Array, ...]:
    def loss(w: tuple[Array, Array]) -> Array:
        return _cross_entropy(jax.nn.relu(x @ w[0]) @ w[1], labels)

    value, (g1, g2) = jax.value_and_grad(loss)((w1, w2))
    return value, w1 - _BF16(0.1) * g1, w2 - _BF16(0.1) * g2


@of("f32[8,16]", "f32[16,32]", "f32[32,10]", "s32[8]:below10")
def step_under_a_policy_of_mixed_precision(
    x: Array, w1: Array, w2: Array, labels: Array
) -> tuple[Array, ...]:
    def loss(w: tuple[Array, Array]) -> Array:
        low = jax.tree.map(lambda a: a.astype(_BF16), w)
        h = jax.nn.gelu(x.astype(_BF16) @ low[0])
        return _cross_entropy((h @ low[1]).astype(jnp.float32), labels)

    value, grads = jax.value_and_grad(loss)((w1, w2))
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in grads))
    factor = jnp.minimum(1.0, 1.0 / (norm + 1e-6))
    return value, *(w - 0.05 * factor * g for w, g in zip((w1, w2), grads, strict=True))


@of("f32[8,16]", "f32[16,32]", "f32[32,4]", "f32[8,4]", "f32[]:positive")
def step_in_f16_that_skips_overflows(
    x: Array, w1: Array, w2: Array, y: Array, scale: Array
) -> tuple[Array, ...]:
    scale = scale * 4096

    def loss(w: tuple[Array, Array]) -> Array:
        h = jnp.tanh(x.astype(_F16) @ w[0].astype(_F16))
        error = (h @ w[1].astype(_F16)).astype(jnp.float32) - y
        return jnp.mean(error**2) * scale

    grads = jax.grad(loss)((w1, w2))
    grads = jax.tree.map(lambda g: g / scale, grads)
    finite = jnp.all(jnp.array([jnp.isfinite(g).all() for g in grads]))
    stepped = jax.tree.map(lambda w, g: jnp.where(finite, w - 0.01 * g, w), (w1, w2), grads)
    return *stepped, jnp.where(finite, scale * 2, scale / 2)


@of("bf16[2,2,12,8]", "bf16[2,2,12,8]", "bf16[2,2,12,8]")
def heads_of_attention_in_bf16(q: Array, k: Array, v: Array) -> Array:
    return _attention(q, k, v)


@of("bf16[2,10,8]", "bf16[2,10,8]", "bf16[2,10,8]", "bf16[2,10,8]")
def gradients_of_heads_in_bf16(q: Array, k: Array, v: Array, upstream: Array) -> object:
    return jax.vjp(_attention, q, k, v)[1](upstream)


@of("f16[10,8]", "f16[10,8]", "f16[10,8]", "f16[10,8]")
def gradients_of_attention_in_f16(q: Array, k: Array, v: Array, upstream: Array) -> object:
    return jax.vjp(partial(_attention, causal=False), q, k, v)[1](upstream)


@of("bf16[6,24]", "bf16[24]", "bf16[24]", "bf16[6,24]")
def gradients_of_layer_norm_in_bf16(x: Array, gain: Array, bias: Array, up: Array) -> object:
    return jax.vjp(_layer_norm, x, gain, bias)[1](up)


@of("f16[6,24]", "f16[24]", "f16[24]", "f16[6,24]")
def layer_norm_and_gradients_in_f16(x: Array, gain: Array, bias: Array, up: Array) -> object:
    y, pull = jax.vjp(_layer_norm, x, gain, bias)
    return y, pull(up)


@of("bf16[6,24]", "bf16[24]", "bf16[6,24]")
def gradients_of_rms_norm_in_bf16(x: Array, gain: Array, up: Array) -> object:
    return jax.vjp(_rms_norm, x, gain)[1](up)


@of("bf16[8,16]", "bf16[16,24]", "bf16[16,24]", "bf16[24,16]", "bf16[8,16]")
def gradients_of_a_gated_layer(x: Array, gate: Array, up: Array, down: Array, y: Array) -> object:
    def loss(weights: tuple[Array, ...]) -> Array:
        g, u, d = weights
        out = (jax.nn.silu(x @ g) * (x @ u)) @ d
        return jnp.mean(jnp.square((out - y).astype(jnp.float32)))

    return jax.value_and_grad(loss)((gate / 4, up / 4, down / 4))


@of("bf16[10,16]", "bf16[16]", "bf16[16,48]:hundredths", "bf16[16,16]:hundredths", "bf16[16]")
def block_before_the_norm_with_gradients(
    x: Array, gain: Array, qkv: Array, out: Array, bias: Array
) -> object:
    def block(p: dict[str, Array]) -> Array:
        h = _layer_norm(x, p["gain"], p["bias"]) @ (p["qkv"] * 20)
        q, k, v = jnp.split(h.reshape(10, 3, 2, 8), 3, 1)
        heads = _attention(*(t[:, 0].swapaxes(0, 1) for t in (q, k, v)))
        y = x + heads.swapaxes(0, 1).reshape(10, 16) @ (p["out"] * 20)
        return jnp.sum(y.astype(jnp.float32) ** 2) / y.size

    return jax.value_and_grad(block)({"gain": gain, "bias": bias, "qkv": qkv, "out": out})


@of("s32[2,9]:below20", "bf16[20,12]", "bf16[12,12]", "bf16[12]")
def language_model_with_tied_embedding(
    tokens: Array, table: Array, w: Array, gain: Array
) -> object:
    def loss(table: Array, w: Array) -> Array:
        h = table[tokens[:, :-1]]
        h = h + jnp.tanh(_rms_norm(h, gain) @ w)
        logits = (h @ table.T).astype(jnp.float32).reshape(-1, 20)
        return _cross_entropy(logits, tokens[:, 1:].reshape(-1))

    return jax.value_and_grad(loss, (0, 1))(table, w)


@of("bf16[4,8,8,3]", "bf16[3,3,3,6]", "bf16[6]", "s32[4]:below6")
def convolution_net_in_bf16(x: Array, kernel: Array, bias: Array, labels: Array) -> object:
    def loss(p: tuple[Array, Array]) -> Array:
        y = lax.conv_general_dilated(
            x, p[0], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        y = jax.nn.relu(y + p[1]).mean((1, 2))
        return _cross_entropy(y, labels)

    value, grads = jax.value_and_grad(loss)((kernel, bias))
    return value, jax.tree.map(lambda w, g: w - 0.1 * g.astype(w.dtype), (kernel, bias), grads)


@of("bf16[7,3,6]", "bf16[6,24]", "bf16[6,24]", "bf16[24]")
def lstm_in_bf16_with_gradients(xs: Array, wx: Array, wh: Array, b: Array) -> object:
    def run(w: tuple[Array, Array, Array]) -> Array:
        def step(state: tuple[Array, Array], x: Array) -> tuple[tuple[Array, Array], None]:
            h, c = state
            i, f, g, o = jnp.split(x @ w[0] + h @ w[1] + w[2], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

        zero = jnp.zeros((3, 6), _BF16)
        (h, _), _ = lax.scan(step, (zero, zero), xs)
        return jnp.mean(h.astype(jnp.float32) ** 2)

    return jax.value_and_grad(run)((wx / 3, wh / 3, b))


@of("f32[4,8,16]", "f32[16,16]", "f32[16,16]", "f32[4,8,16]")
def accumulated_gradients_of_small_batches(x: Array, w1: Array, w2: Array, y: Array) -> object:
    def loss(w: tuple[Array, Array], x: Array, y: Array) -> Array:
        low = [a.astype(_BF16) / 4 for a in w]
        out = jax.nn.gelu(x.astype(_BF16) @ low[0]) @ low[1]
        return jnp.mean((out.astype(jnp.float32) - y) ** 2)

    def step(total: object, batch: tuple[Array, Array]) -> tuple[object, Array]:
        value, g = jax.value_and_grad(loss)((w1, w2), *batch)
        return jax.tree.map(jnp.add, total, g), value

    zero = (jnp.zeros_like(w1), jnp.zeros_like(w2))
    total, values = lax.scan(step, zero, (x, y))
    return jax.tree.map(lambda g: g / 4, total), values


@of("bf16[12,16]", "bf16[16,16]", "bf16[16,16]", "bf16[12,16]")
def layers_with_recomputed_activations(x: Array, w1: Array, w2: Array, y: Array) -> object:
    @jax.checkpoint
    def layer(h: Array, w: Array) -> Array:
        return h + jax.nn.swish(_rms_norm(h, jnp.ones(16, _BF16)) @ (w / 4))

    def loss(w: tuple[Array, Array]) -> Array:
        h = layer(layer(x, w[0]), w[1])
        return jnp.mean((h - y).astype(jnp.float32) ** 2)

    return jax.grad(loss)((w1, w2))


@of("bf16[3,8,12]", "bf16[4,12,12]:hundredths", "bf16[4,12]")
def layers_in_a_scan_with_gradients(x: Array, weights: Array, gains: Array) -> object:
    def model(p: tuple[Array, Array]) -> Array:
        def layer(h: Array, p: tuple[Array, Array]) -> tuple[Array, None]:
            w, gain = p
            return h + jax.nn.relu(_rms_norm(h, gain) @ (w * 30)), None

        h, _ = lax.scan(layer, x, p)
        return jnp.mean(h.astype(jnp.float32))

    return jax.value_and_grad(model)((weights, gains))


@of("s32[2,12]", "bf16[100,16]", "bf16[2,16,48]", "bf16[2,16,32]", "bf16[2,32,16]")
def gradients_of_two_transformer_layers(
    tokens: Array, table: Array, qkv: Array, up: Array, down: Array
) -> object:
    """Make rows of products of what is left of a difference in the gradient of each softmax."""

    def loss(p: tuple[Array, ...]) -> Array:
        gain = jnp.ones(16, _BF16)
        h = p[0][tokens % 100]
        for one, wide, narrow in zip(*p[1:], strict=True):
            parts = jnp.split(_rms_norm(h, gain) @ (one / 5), 3, -1)
            q, k, v = (part.reshape(2, 12, 4, 4) for part in parts)
            h = h + jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(h.shape)
            h = h + jax.nn.gelu(_rms_norm(h, gain) @ (wide / 5)) @ (narrow / 5)
        logits = (_rms_norm(h, gain) @ p[0].T).reshape(24, 100)
        return _cross_entropy(logits, jnp.roll(tokens, -1, 1).reshape(24) % 100)

    return jax.grad(loss)((table, qkv, up, down))
