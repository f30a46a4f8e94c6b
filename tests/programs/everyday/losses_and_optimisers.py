"""Losses in narrow types, and optimisers whose states are narrow."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax, random

from programs.function import of

_BF16 = jnp.bfloat16


def _rounded_by_chance(x: Array, key: Array) -> Array:
    """Round f32 to bf16, up with the probability of what is cut off."""
    bits = lax.bitcast_convert_type(x, jnp.uint32)
    noise = random.bits(key, x.shape, jnp.uint32) & jnp.uint32(0xFFFF)
    cut = (bits + noise) & jnp.uint32(0xFFFF0000)
    return lax.bitcast_convert_type(cut, jnp.float32).astype(_BF16)


@of("f32[40]", "f32[40]", "bf16[40]:hundredths", "bf16[40]:fraction", "s32[]:below100")
def adamw_with_states_of_bf16(w: Array, g: Array, m: Array, v: Array, t: Array) -> object:
    m = 0.9 * m.astype(jnp.float32) + 0.1 * g
    v = 0.999 * v.astype(jnp.float32) + 0.001 * jnp.square(g)
    step = (t + 1).astype(jnp.float32)
    ahead, root = m / (1 - 0.9**step), jnp.sqrt(v / (1 - 0.999**step))
    w = w - 3e-4 * (ahead / (root + 1e-8) + 0.1 * w)
    return w, m.astype(_BF16), v.astype(_BF16)


@of("bf16[60]", "f32[60]", "u32[2]")
def sgd_with_stochastic_rounding(w: Array, g: Array, key: Array) -> Array:
    return _rounded_by_chance(w.astype(jnp.float32) - 0.01 * g, random.wrap_key_data(key))


@of("bf16[60]", "bf16[60]", "bf16[60]:hundredths")
def lion_with_a_state_of_bf16(w: Array, g: Array, m: Array) -> object:
    update = jnp.sign(_BF16(0.9) * m + _BF16(0.1) * g)
    return w - _BF16(1e-3) * (update + _BF16(0.1) * w), _BF16(0.99) * m + _BF16(0.01) * g


@of("bf16[12,20]", "bf16[12,20]", "bf16[12]:fraction", "bf16[20]:fraction")
def adafactor_with_factors_of_bf16(w: Array, g: Array, rows: Array, columns: Array) -> object:
    square = jnp.square(g.astype(jnp.float32)) + 1e-30
    rows = 0.99 * rows.astype(jnp.float32) + 0.01 * square.mean(1)
    columns = 0.99 * columns.astype(jnp.float32) + 0.01 * square.mean(0)
    v = rows[:, None] * columns / rows.mean()
    update = g.astype(jnp.float32) * lax.rsqrt(v)
    update = update / jnp.maximum(1.0, jnp.sqrt(jnp.mean(update**2)))
    new = (w.astype(jnp.float32) - 1e-2 * update).astype(_BF16)
    return new, rows.astype(_BF16), columns.astype(_BF16)


@of("f16[50]", "f16[50]", "f16[50]:hundredths")
def nesterov_in_f16(w: Array, g: Array, m: Array) -> object:
    m = jnp.float16(0.9) * m + g
    return w - jnp.float16(0.01) * (g + jnp.float16(0.9) * m), m


@of("bf16[50]", "bf16[50]", "bf16[50]:fraction")
def rmsprop_all_in_bf16(w: Array, g: Array, v: Array) -> object:
    v = _BF16(0.9) * v + _BF16(0.1) * g * g
    return w - _BF16(0.01) * g * lax.rsqrt(v + _BF16(1e-6)), v


@of("bf16[6,8]", "bf16[6,8]", "bf16[6,8]:hundredths", "bf16[6,8]:fraction")
def lamb_in_bf16(w: Array, g: Array, m: Array, v: Array) -> object:
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g**2
    update = m / (jnp.sqrt(v) + 1e-6) + 0.01 * w
    trust = jnp.linalg.norm(w) / jnp.linalg.norm(update)
    return w - 0.01 * jnp.where(trust > 0, trust, 1) * update


@of("f32[30]", "f32[8,30]")
def steps_of_adam_in_a_scan(w: Array, gs: Array) -> object:
    def step(state: tuple[Array, ...], g: Array) -> tuple[tuple[Array, ...], Array]:
        w, m, v, t = state
        t = t + 1
        m = (0.9 * m + 0.1 * g.astype(_BF16)).astype(_BF16)
        v = 0.99 * v + 0.01 * g * g
        w = w - 0.01 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.99**t)) + 1e-8)
        return (w, m, v, t), jnp.mean(w)

    start = (w, jnp.zeros(30, _BF16), jnp.zeros(30), jnp.float32(0))
    return lax.scan(step, start, gs)


@of("f32[20]", "f32[6,20]", "u32[2]")
def averaged_weights_rounded_by_chance(w: Array, gs: Array, key: Array) -> object:
    def step(state: tuple[Array, Array], xs: tuple[Array, Array]) -> tuple[object, None]:
        mean, w = state
        g, key = xs
        w = w - 0.1 * g
        return (_rounded_by_chance(0.9 * mean.astype(jnp.float32) + 0.1 * w, key), w), None

    keys = random.split(random.wrap_key_data(key), 6)
    return lax.scan(step, (w.astype(_BF16), w), (gs, keys))[0]


@of("bf16[12,30]", "s32[12]:below30")
def smoothed_cross_entropy_and_gradient_in_bf16(logits: Array, labels: Array) -> object:
    def loss(logits: Array) -> Array:
        target = jax.nn.one_hot(labels, 30, dtype=_BF16) * _BF16(0.9) + _BF16(0.1 / 30)
        return -(target * jax.nn.log_softmax(logits)).sum(-1).mean()

    return jax.value_and_grad(loss)(logits)


@of("bf16[40]", "bf16[40]:fraction")
def focal_loss_and_gradient_in_bf16(x: Array, y: Array) -> object:
    def loss(x: Array) -> Array:
        p = jax.nn.sigmoid(x)
        entropy = -(y * jax.nn.log_sigmoid(x) + (1 - y) * jax.nn.log_sigmoid(-x))
        near = p * y + (1 - p) * (1 - y)
        return (entropy * (1 - near) ** 2).mean()

    return jax.value_and_grad(loss)(x)


@of("f16[10,8]", "f16[10,8]")
def info_nce_in_f16(x: Array, y: Array) -> object:
    def loss(x: Array, y: Array) -> Array:
        x = x / jnp.maximum(jnp.linalg.norm(x, axis=1, keepdims=True), 1e-4)
        y = y / jnp.maximum(jnp.linalg.norm(y, axis=1, keepdims=True), 1e-4)
        logits = (x @ y.T).astype(jnp.float32) / 0.1
        return -jnp.diagonal(jax.nn.log_softmax(logits)).mean()

    return jax.value_and_grad(loss, (0, 1))(x, y)


@of("bf16[9,16]", "bf16[9,16]")
def divergence_of_two_policies_in_bf16(p: Array, q: Array) -> object:
    def loss(q: Array) -> Array:
        a, b = jax.nn.log_softmax(p), jax.nn.log_softmax(q)
        return jnp.sum(jnp.exp(a) * (a - b), -1).mean()

    return jax.value_and_grad(loss)(q)


@of("bf16[8,40]", "s32[8]:below40")
def loss_with_capped_logits_and_a_penalty(logits: Array, labels: Array) -> object:
    def loss(logits: Array) -> Array:
        x = 30 * jnp.tanh(logits.astype(jnp.float32) / 30)
        z = jax.nn.logsumexp(x, -1)
        chosen = jnp.take_along_axis(x, labels[:, None], -1)[:, 0]
        return jnp.mean(z - chosen) + 1e-4 * jnp.mean(z * z)

    return jax.value_and_grad(loss)(logits)


@of("f16[30]", "f16[30]")
def huber_quantile_and_log_cosh_in_f16(x: Array, y: Array) -> object:
    def loss(x: Array) -> Array:
        e = x - y
        huber = jnp.where(jnp.abs(e) < 1, 0.5 * e * e, jnp.abs(e) - 0.5)
        pinball = jnp.maximum(0.9 * e, -0.1 * e)
        smooth = e + jax.nn.softplus(-2 * e) - 0.6931
        return (huber + pinball + smooth).mean()

    return jax.value_and_grad(loss)(x)


@of("bf16[5,12]", "bf16[5,12]", "bf16[5,12]:fraction")
def clipped_surrogate_in_bf16(new: Array, old: Array, advantage: Array) -> object:
    def loss(new: Array) -> Array:
        ratio = jnp.exp((new - old) / 8)
        clipped = jnp.clip(ratio, 0.8, 1.2)
        return -jnp.minimum(ratio * advantage, clipped * advantage).mean()

    return jax.value_and_grad(loss)(new)


@of("bf16[10,6]", "bf16[10,6]")
def elbo_of_a_gaussian_in_bf16(mean: Array, logvar: Array) -> object:
    def loss(mean: Array, logvar: Array) -> Array:
        return -0.5 * (1 + logvar - mean**2 - jnp.exp(logvar)).sum(-1).mean()

    return jax.value_and_grad(loss, (0, 1))(mean, logvar)


@of("f32[16]", "f32[16]", "f32[]:positive", "s32[]:below3")
def dynamic_scale_that_grows_and_backs_off(w: Array, g: Array, scale: Array, good: Array) -> object:
    scaled = (g * scale * 2.0**12).astype(jnp.float16)
    finite = jnp.isfinite(scaled).all()
    g = scaled.astype(jnp.float32) / (scale * 2.0**12)
    w = lax.cond(finite, lambda: w - 0.1 * g, lambda: w)
    good = jnp.where(finite, good + 1, 0)
    grown = jnp.where(good >= 2, scale * 2, scale)
    return w, jnp.where(finite, grown, scale / 2), jnp.where(good >= 2, 0, good)
