"""Losses, optimisers, quantisation and whole training steps in narrow and mixed precision."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of

BF16, F16, F32 = jnp.bfloat16, jnp.float16, jnp.float32


def _smoothed(logits: Array, labels: Array, by: float = 0.1) -> Array:
    """Cross entropy in f32 of labels smoothed, with z-loss; a label of -1 does not count."""
    wide = logits.astype(F32)
    total = jax.nn.logsumexp(wide, axis=-1)
    valid = (labels >= 0).astype(F32)
    picked = jnp.take_along_axis(wide, jnp.maximum(labels, 0)[:, None], -1)[:, 0]
    loss = total - (1 - by) * picked - by * wide.mean(-1) + 1e-4 * total**2
    return (loss * valid).sum() / jnp.maximum(valid.sum(), 1)


@of("bf16[12,40]:scaled3", "s32[12]:digits")
def gradient_of_smoothed_loss_with_ignored_labels(logits: Array, labels: Array) -> object:
    return jax.value_and_grad(_smoothed)(logits, labels)


@of("bf16[16,24]", "bf16[40,24]", "s32[16]:below40")
def loss_over_the_vocabulary_in_chunks(x: Array, embedding: Array, labels: Array) -> object:
    def loss(x: Array, embedding: Array) -> Array:
        def chunk(rows: tuple[Array, Array]) -> Array:
            x, labels = rows
            logits = jnp.matmul(x, embedding.T, preferred_element_type=F32)
            picked = jnp.take_along_axis(logits, labels[:, None], -1)[:, 0]
            return (jax.nn.logsumexp(logits, -1) - picked).sum()

        rows = x.reshape(4, 4, 24), labels.reshape(4, 4)
        return lax.map(jax.checkpoint(chunk), rows).sum() / 16

    return jax.grad(loss, (0, 1))(x, embedding)


@of("bf16[8,12]", "bf16[8,12]", "bf16[8,12]", "bf16[8,12]")
def direct_preference_loss(
    won: Array, lost: Array, won_before: Array, lost_before: Array
) -> object:
    def loss(won: Array, lost: Array) -> Array:
        a = (jax.nn.log_sigmoid(won) - jax.nn.log_sigmoid(won_before)).sum(-1)
        b = (jax.nn.log_sigmoid(lost) - jax.nn.log_sigmoid(lost_before)).sum(-1)
        return -jax.nn.log_sigmoid(BF16(0.1) * (a - b)).mean()

    return jax.value_and_grad(loss, (0, 1))(won, lost)


@of("f16[32]", "f16[32]", "f32[32]", "f32[32]")
def clipped_policy_loss(new: Array, old: Array, advantage: Array, value: Array) -> object:
    def loss(new: Array) -> Array:
        ratio = jnp.exp((new - old).astype(F32))
        scaled = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        policy = jnp.minimum(ratio * scaled, jnp.clip(ratio, 0.8, 1.2) * scaled)
        divergence = (ratio - 1) - jnp.log(ratio)
        return (-policy + 0.01 * divergence).mean() + 0.5 * jnp.mean((value - advantage) ** 2)

    return jax.value_and_grad(loss)(new)


@of("bf16[2,8,8,3]", "bf16[2,8,8,3]:fraction")
def dice_and_focal_loss_of_masks(logits: Array, target: Array) -> object:
    def loss(logits: Array) -> Array:
        p = jax.nn.sigmoid(logits)
        overlap = 2 * (p * target).sum((1, 2)) + 1
        dice = 1 - overlap / (p.sum((1, 2)) + target.sum((1, 2)) + 1)
        correct = p * target + (1 - p) * (1 - target)
        focal = -((1 - correct) ** 2) * jnp.log(jnp.clip(correct, 1e-4, 1))
        return dice.mean() + focal.mean()

    return jax.value_and_grad(loss)(logits)


@of("f16[10,16]", "f16[10,16]", "s32[10]:below4")
def supervised_contrast_with_gradient(x: Array, y: Array, labels: Array) -> object:
    def loss(x: Array, y: Array) -> Array:
        both = jnp.concatenate([x, y]).astype(F32)
        both = both * lax.rsqrt(jnp.maximum((both**2).sum(-1, keepdims=True), 1e-12))
        scores = both @ both.T / 0.1
        own = jnp.eye(20, dtype=bool)
        twice = jnp.tile(labels, 2)
        same = (twice[:, None] == twice) & ~own
        logs = jax.nn.log_softmax(jnp.where(own, -1e9, scores), -1)
        return -((logs * same).sum(-1) / same.sum(-1)).mean()

    return jax.grad(loss, (0, 1))(x, y)


@of("bf16[4,24]:scaled3", "bf16[4,24]:scaled3")
def distillation_by_top_five(student: Array, teacher: Array) -> object:
    values, places = lax.top_k(teacher / 2, 5)
    target = jax.nn.softmax(values.astype(F32))

    def loss(student: Array) -> Array:
        logs = jnp.take_along_axis(jax.nn.log_softmax(student / 2), places, -1)
        return 4 * (target * (jnp.log(target) - logs.astype(F32))).sum(-1).mean()

    return jax.value_and_grad(loss)(student)


@of(
    "f32[16,24]",
    "f32[24,32]",
    "f32[32,8]",
    "s32[16]:below8",
    "f32[24,32]",
    "f32[32,8]",
    "s32[]:below9",
)
def training_step_with_dynamic_loss_scale(
    x: Array, w: Array, v: Array, labels: Array, *state: Array
) -> object:
    """Forward and backward in f16, master weights and momentum in f32, the scale doubles or
    halves."""
    mw, mv, good = state
    scale = F32(2.0) ** 15

    def loss(weights: tuple[Array, Array]) -> Array:
        a, b = (one.astype(F16) for one in weights)
        logits = jax.nn.gelu(x.astype(F16) @ a) @ b
        return _smoothed(logits, labels) * scale

    gradients = jax.tree.map(lambda g: g / scale, jax.grad(loss)((w, v)))
    fine = jnp.all(jnp.array([jnp.isfinite(g).all() for g in gradients]))
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in gradients))
    factor = jnp.minimum(1.0, 1.0 / (norm + 1e-6))
    moments = [0.9 * m + factor * g for m, g in zip((mw, mv), gradients, strict=True)]
    weights = [jnp.where(fine, p - 0.01 * m, p) for p, m in zip((w, v), moments, strict=True)]
    doubled = good + 1 >= 8
    following = jnp.where(fine, jnp.where(doubled, scale * 2, scale), scale / 2)
    return weights, moments, following, jnp.where(fine & ~doubled, good + 1, 0)


@of("bf16[16,12]", "bf16[12,12]", "bf16[12]", "f32[16,12]")
def step_with_accumulated_gradients(x: Array, w: Array, b: Array, y: Array) -> object:
    """Four microbatches, gradients of bf16 added up in f32."""

    def loss(weights: tuple[Array, Array], x: Array, y: Array) -> Array:
        w, b = weights
        return jnp.mean((jnp.tanh(x @ w + b).astype(F32) - y) ** 2)

    def micro(total: object, rows: tuple[Array, Array]) -> tuple[object, Array]:
        value, found = jax.value_and_grad(loss)((w, b), *rows)
        return jax.tree.map(lambda t, g: t + g.astype(F32), total, found), value

    start = jnp.zeros(w.shape), jnp.zeros(b.shape)
    total, values = lax.scan(micro, start, (x.reshape(4, 4, 12), y.reshape(4, 4, 12)))
    new = jax.tree.map(lambda p, g: (p.astype(F32) - 0.1 / 4 * g).astype(BF16), (w, b), total)
    return new, values


@of("bf16[24,16]", "bf16[24,16]", "f32[24,16]", "s32[]:below100")
def muon_step(w: Array, gradient: Array, momentum: Array, _: Array) -> tuple[Array, Array]:
    momentum = 0.95 * momentum + gradient.astype(F32)
    x = (gradient.astype(F32) + 0.95 * momentum).astype(BF16).T
    x = x / (jnp.linalg.norm(x.astype(F32)).astype(BF16) + BF16(1e-7))
    a, b, c = 3.4445, -4.7750, 2.0315
    for _step in range(5):
        square = x @ x.T
        x = BF16(a) * x + (BF16(b) * square + BF16(c) * square @ square) @ x
    update = x.T * BF16(max(1, 24 / 16) ** 0.5)
    return (w * BF16(1 - 0.02 * 0.01) - BF16(0.02) * update).astype(BF16), momentum


@of(
    "bf16[20,12]",
    "bf16[20,12]:hundredths",
    "f32[20]:positive",
    "f32[12]:positive",
    "s32[]:below100",
)
def adafactor_without_momentum_bf16(
    w: Array, g: Array, rows: Array, columns: Array, step: Array
) -> tuple[Array, ...]:
    decay = 1 - (step.astype(F32) + 1) ** -0.8
    square = g.astype(F32) ** 2 + 1e-30
    rows = decay * rows + (1 - decay) * square.mean(1)
    columns = decay * columns + (1 - decay) * square.mean(0)
    update = g * lax.rsqrt(rows / rows.mean())[:, None] * lax.rsqrt(columns)[None]
    update = update / jnp.maximum(1.0, jnp.sqrt(jnp.mean(update**2)))
    size = jnp.maximum(1e-3, jnp.sqrt(jnp.mean(w.astype(F32) ** 2)))
    return (w - (0.01 * size * update).astype(BF16)), rows, columns


@of("s8[64]", "f32[4]:positive", "s8[64]", "f32[4]:positive", "bf16[64]", "bf16[64]:hundredths")
def adam_with_moments_of_eight_bits(
    m: Array, m_scale: Array, v: Array, v_scale: Array, w: Array, g: Array
) -> tuple[Array, ...]:
    def wide(x: Array, scale: Array) -> Array:
        return (x.reshape(4, 16).astype(F32) * scale[:, None] / 127).reshape(-1)

    def narrow(x: Array) -> tuple[Array, Array]:
        blocks = x.reshape(4, 16)
        scale = jnp.abs(blocks).max(1)
        codes = jnp.round(blocks / scale[:, None] * 127).astype(jnp.int8)
        return codes.reshape(-1), scale

    first = 0.9 * wide(m, m_scale) + 0.1 * g
    second = 0.99 * jnp.abs(wide(v, v_scale)) + 0.01 * g.astype(F32) ** 2
    w = w - (1e-3 * first / (jnp.sqrt(second) + 1e-8)).astype(BF16)
    return (w, *narrow(first), *narrow(second))


@of("bf16[100]", "bf16[100]", "bf16[100]", "u32[2]")
def lion_with_stochastic_rounding(w: Array, g: Array, m: Array, key: Array) -> tuple[Array, Array]:
    update = jnp.sign(BF16(0.9) * m + BF16(0.1) * g)
    target = w.astype(F32) * (1 - 1e-4) - 3e-4 * update.astype(F32)
    noise = jax.random.bits(jax.random.wrap_key_data(key), w.shape, jnp.uint16)
    raw = lax.bitcast_convert_type(target, jnp.uint32) + noise.astype(jnp.uint32)
    kept = lax.bitcast_convert_type((raw >> 16).astype(jnp.uint16), BF16)
    return kept, BF16(0.99) * m + BF16(0.01) * g


@of("bf16[12,12]", "bf16[12,12]", "f32[12,12]:definite", "f32[12,12]:definite")
def shampoo_step(w: Array, g: Array, left: Array, right: Array) -> Array:
    def root(x: Array) -> Array:
        values, vectors = jnp.linalg.eigh(x)
        return (vectors * jnp.maximum(values, 1e-6) ** -0.25) @ vectors.T

    wide = g.astype(F32)
    left, right = left + wide @ wide.T, right + wide.T @ wide
    return w - (0.1 * root(left) @ wide @ root(right)).astype(BF16)


@of("f16[40]", "f16[40]", "f16[40]", "f32[]:fraction")
def sharpness_aware_step(w: Array, x: Array, y: Array, rho: Array) -> Array:
    def loss(w: Array) -> Array:
        return jnp.log1p(jnp.exp(-(y * x * w))).mean()

    first = jax.grad(loss)(w)
    norm = jnp.sqrt((first.astype(F32) ** 2).sum())
    return w - F16(0.5) * jax.grad(loss)(w + (rho * first / (norm + 1e-12)).astype(F16))


@of("bf16[8,32]:scaled2", "s4[32,16]", "bf16[2,16]:positive")
def product_of_four_bit_weights(x: Array, w: Array, scales: Array) -> Array:
    wide = w.astype(BF16).reshape(2, 16, 16) * scales[:, None]
    return x @ wide.reshape(32, 16)


@of("bf16[8,24]:scaled3", "f32[24,12]", "f32[24]:positive")
def smoothed_activations_in_int8(x: Array, w: Array, smooth: Array) -> Array:
    """SmoothQuant: channels scaled from activations to weights, both in int8."""
    x, w = x.astype(F32) / smooth, w * smooth[:, None]
    by_row = jnp.abs(x).max(1, keepdims=True) / 127
    by_column = jnp.abs(w).max(0, keepdims=True) / 127
    a = jnp.clip(jnp.round(x / by_row), -128, 127).astype(jnp.int8)
    b = jnp.clip(jnp.round(w / by_column), -128, 127).astype(jnp.int8)
    found = lax.dot(a, b, preferred_element_type=jnp.int32)
    return (found.astype(F32) * by_row * by_column).astype(BF16)


@of("bf16[8,64]", "bf16[16,64]")
def products_of_blocks_of_f8_with_shared_exponents(x: Array, w: Array) -> Array:
    """MXFP8: blocks of 32 numbers of e4m3 share a power of two."""

    def blocks(x: Array) -> Array:
        parts = x.astype(F32).reshape(x.shape[0], 2, 32)
        power = jnp.floor(jnp.log2(jnp.abs(parts).max(-1, keepdims=True))) - 8
        scale = jnp.exp2(jnp.clip(power, -127, 127))
        narrow = jnp.clip(parts / scale, -448, 448).astype(jnp.float8_e4m3fn)
        return (narrow.astype(F32) * scale).reshape(x.shape).astype(BF16)

    return jnp.matmul(blocks(x), blocks(w).T, preferred_element_type=F32)


@of("bf16[16,24]", "bf16[24,24]", "bf16[16,24]", "f32[3]:positive")
def f8_layer_with_gradients_of_e5m2(x: Array, w: Array, up: Array, scales: Array) -> object:
    """Forward in e4m3, backward in e5m2, scales from before, the new extremes given back."""

    def narrow(x: Array, scale: Array, kind: type) -> Array:
        most = float(jnp.finfo(kind).max)
        return jnp.clip(x.astype(F32) / scale, -most, most).astype(kind)

    e4, e5 = jnp.float8_e4m3fn, jnp.float8_e5m2
    a, b, g = narrow(x, scales[0], e4), narrow(w, scales[1], e4), narrow(up, scales[2], e5)
    y = jnp.matmul(a, b, preferred_element_type=F32) * (scales[0] * scales[1])
    dx = jnp.matmul(g, b.T, preferred_element_type=F32) * (scales[2] * scales[1])
    dw = jnp.matmul(a.T, g, preferred_element_type=F32) * (scales[0] * scales[2])
    extremes = jnp.stack([jnp.abs(one).max() for one in (x, w, up)])
    return y.astype(BF16), dx.astype(BF16), dw, extremes


@of("bf16[6,10,16]", "bf16[16,32]", "bf16[16,32]", "bf16[32]", "bf16[32,16]", "bf16[6,10,16]")
def gradients_of_gated_layer_with_dropout(
    x: Array, w: Array, v: Array, b: Array, out: Array, up: Array
) -> object:
    keep = jax.random.bernoulli(jax.random.key(3), 0.9, (6, 10, 32))

    def layer(x: Array, w: Array, v: Array, b: Array, out: Array) -> Array:
        h = jax.nn.gelu(x @ w + b) * (x @ v)
        return x + jnp.where(keep, h / BF16(0.9), 0) @ out

    return jax.vjp(layer, x, w, v, b, out)[1](up)
