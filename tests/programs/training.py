"""Optimiser steps, losses, attention, normalisation and their gradients in f32."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from programs.function import of


@of("f32[200]", "f32[200]", "f32[200]:hundredths", "f32[200]:fraction", "s32[]:below100")
def adam_step(w: Array, g: Array, m: Array, v: Array, t: Array) -> tuple[Array, Array, Array]:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    step = t + 1
    corrected = m / (1 - 0.9**step), v / (1 - 0.999**step)
    return w - 1e-3 * corrected[0] / (jnp.sqrt(corrected[1]) + 1e-8), m, v


@of("f32[200]", "f32[200]", "f32[200]")
def momentum_step(w: Array, g: Array, velocity: Array) -> tuple[Array, Array]:
    velocity = 0.9 * velocity + g
    return w - 0.01 * (g + 0.9 * velocity), velocity


@of("f32[40,30]", "f32[40]:fraction", "f32[30]:fraction")
def adafactor_step(g: Array, rows: Array, columns: Array) -> Array:
    squares = g * g + 1e-30
    rows = 0.99 * rows + 0.01 * squares.mean(1)
    columns = 0.99 * columns + 0.01 * squares.mean(0)
    update = g / jnp.sqrt(rows[:, None] * columns / rows.mean())
    return update / jnp.maximum(1.0, jnp.sqrt((update * update).mean()))


@of("f32[200]", "f32[30,10]")
def clipped_by_global_norm(a: Array, b: Array) -> tuple[Array, Array]:
    norm = jnp.sqrt((a * a).sum() + (b * b).sum())
    scale = jnp.minimum(1.0, 1.0 / norm)
    return a * scale, b * scale


@of("f32[16,20]", "f32[20,32]", "f32[32,5]", "s32[16]:below5")
def step_of_a_perceptron(x: Array, w: Array, v: Array, labels: Array) -> tuple[Array, Array]:
    def loss(w: Array, v: Array) -> Array:
        scores = jax.nn.log_softmax(jnp.tanh(x @ w / 5) @ v)
        return -jnp.take_along_axis(scores, labels[:, None], 1).mean()

    a, b = jax.grad(loss, (0, 1))(w, v)
    return w - 0.1 * a, v - 0.1 * b


@of("f32[8,16,32]", "f32[32]", "f32[32]")
def layer_norm(x: Array, gain: Array, bias: Array) -> Array:
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-6) * gain + bias


@of("f32[8,32]", "f32[32]")
def gradient_of_root_mean_square_norm(x: Array, gain: Array) -> tuple[Array, Array]:
    def loss(x: Array, gain: Array) -> Array:
        return (x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * gain).sum()

    return jax.grad(loss, (0, 1))(x, gain)


@of("f32[2,4,16,8]", "f32[2,4,16,8]", "f32[2,4,16,8]")
def causal_attention(q: Array, k: Array, v: Array) -> Array:
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / jnp.sqrt(8)
    scores = jnp.where(jnp.tril(jnp.ones((16, 16), bool)), scores, -1e9)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), v)


@of("f32[12,8]", "f32[12,8]", "f32[12,8]")
def gradients_of_attention(q: Array, k: Array, v: Array) -> tuple[Array, ...]:
    def loss(q: Array, k: Array, v: Array) -> Array:
        return (jax.nn.softmax(q @ k.T / 3) @ v).sum()

    return jax.grad(loss, (0, 1, 2))(q, k, v)


@of("f32[2,10,4,8]")
def rotary_embedding(x: Array) -> Array:
    angles = jnp.arange(10)[:, None] * (10000.0 ** (-jnp.arange(4) / 4))
    cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
    a, b = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


@of("f32[2,6,16]", "f32[16,32]", "f32[16,32]", "f32[32,16]")
def gated_feed_forward(x: Array, w: Array, v: Array, u: Array) -> Array:
    return (jax.nn.silu(x @ w) * (x @ v)) @ u


@of("f32[12,16]", "f32[16,4]", "f32[4,16,16]")
def mixture_of_experts(x: Array, gate: Array, experts: Array) -> Array:
    weights, chosen = lax.top_k(jax.nn.softmax(x @ gate), 2)
    outputs = jnp.einsum("nd,edf->nef", x, experts)
    taken = jnp.take_along_axis(outputs, chosen[..., None], 1)
    return (taken * (weights / weights.sum(1, keepdims=True))[..., None]).sum(1)


@of("f32[32,10]:scaled3", "s32[32]:below10")
def smoothed_cross_entropy(logits: Array, labels: Array) -> Array:
    targets = jax.nn.one_hot(labels, 10) * 0.9 + 0.01
    return -(targets * jax.nn.log_softmax(logits)).sum(1).mean()


@of("f32[64]", "f32[64]")
def regression_losses(x: Array, y: Array) -> tuple[Array, ...]:
    d = x - y
    huber = jnp.where(jnp.abs(d) < 1, 0.5 * d * d, jnp.abs(d) - 0.5)
    return (d * d).mean(), jnp.abs(d).mean(), huber.mean(), jnp.sqrt((d * d).mean())


@of("f32[8,16]", "f32[8,16]")
def contrastive_loss(x: Array, y: Array) -> Array:
    x = x / jnp.linalg.norm(x, axis=1, keepdims=True)
    y = y / jnp.linalg.norm(y, axis=1, keepdims=True)
    return -jnp.diagonal(jax.nn.log_softmax(x @ y.T / 0.1)).mean()


@of("f32[32,8]", "f32[32,8]", "f32[32,8]")
def variational_loss(mean: Array, log_variance: Array, noise: Array) -> tuple[Array, Array]:
    z = mean + jnp.exp(0.5 * log_variance) * noise
    divergence = -0.5 * (1 + log_variance - mean**2 - jnp.exp(log_variance)).sum(1)
    return z, divergence.mean()


@of("f32[10]", "f32[10]")
def hessian_of_a_loss(w: Array, x: Array) -> Array:
    return jax.hessian(lambda w: jnp.log1p(jnp.exp(-w @ x)) + 0.1 * w @ w)(w)


@of("f32[5]", "f32[5]")
def jacobians(x: Array, y: Array) -> tuple[Array, Array]:
    def f(x: Array) -> Array:
        return jnp.stack([jnp.sin(x).sum(), (x * y).sum(), jnp.exp(x[0]) * x[1]])

    return jax.jacfwd(f)(x), jax.jacrev(f)(x)


@of("f32[64,32]", "f32[32]:fraction", "f32[32]:fraction")
def batch_norm_training(x: Array, mean: Array, variance: Array) -> tuple[Array, ...]:
    m, v = x.mean(0), x.var(0)
    y = (x - m) * lax.rsqrt(v + 1e-5)
    return y, 0.9 * mean + 0.1 * m, 0.9 * variance + 0.1 * v


@of("f32[32]", "f32[32]", "f32[32]", "s32[]:below1000")
def cosine_schedule_step(w: Array, g: Array, noise: Array, step: Array) -> Array:
    rate = 0.5 * (1 + jnp.cos(jnp.pi * step / 1000)) * 1e-3
    return w * (1 - rate * 0.01) - rate * g + noise * 1e-6


@of("f32[20]:fraction", "f32[21]", "f32[20]")
def generalised_advantages(done: Array, values: Array, rewards: Array) -> Array:
    def step(after: Array, given: tuple[Array, ...]) -> tuple[Array, Array]:
        reward, value, following, going = given
        advantage = reward + 0.99 * following * going - value + 0.95 * 0.99 * going * after
        return advantage, advantage

    given = (rewards, values[:-1], values[1:], (done < 0.9).astype(jnp.float32))
    return lax.scan(step, jnp.float32(0), given, reverse=True)[1]


def _group_norm(x: Array, scale: Array, shift: Array) -> Array:
    n, h, w, c = x.shape
    groups = x.reshape(n, h, w, 4, c // 4)
    mean = groups.mean((1, 2, 4), keepdims=True)
    variance = groups.var((1, 2, 4), keepdims=True)
    return ((groups - mean) * lax.rsqrt(variance + 1e-5)).reshape(x.shape) * scale + shift


@of("f32[2,6,6,8]", "f32[8]", "f32[8]")
def gradients_of_group_norm(x: Array, scale: Array, shift: Array) -> tuple[Array, ...]:
    return jax.grad(lambda *given: jnp.sin(_group_norm(*given)).sum(), (0, 1, 2))(x, scale, shift)


@of("f32[32]", "f32[32]", "f32[32]:magnitude", "f32[32]")
def rms_and_sign_steps(p: Array, g: Array, v: Array, m: Array) -> tuple[Array, ...]:
    """A step of RMSprop and one of Lion."""
    square = 0.9 * v + 0.1 * g * g
    rms = p - 1e-2 * g / (jnp.sqrt(square) + 1e-8)
    lion = p - 1e-3 * (jnp.sign(0.9 * m + 0.1 * g) + 0.01 * p)
    return rms, square, lion, 0.99 * m + 0.01 * g


@of("f32[24,10]:scaled4", "s32[24]:below10")
def focal_loss(x: Array, labels: Array) -> tuple[Array, Array]:
    def loss(x: Array) -> Array:
        logs = jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], 1)
        return -jnp.mean((1 - jnp.exp(logs)) ** 2 * logs)

    return jax.value_and_grad(loss)(x)


@of("f32[16,20]:scaled4", "f32[16,20]:scaled4")
def divergence_of_softmaxes(x: Array, y: Array) -> tuple[Array, Array]:
    p, q = jax.nn.softmax(x), jax.nn.softmax(y)
    logs = jax.nn.log_softmax(x) - jax.nn.log_softmax(y)
    return (p * logs).sum(-1), jnp.where(p > 0, p * jnp.log(p / q), 0).sum(-1)


@of("f32[12,9]", "f32[12,9]:fraction")
def straight_through_gumbel_softmax(x: Array, u: Array) -> tuple[Array, Array]:
    def loss(x: Array) -> tuple[Array, Array]:
        soft = jax.nn.softmax((x - jnp.log(-jnp.log(u + 1e-20) + 1e-20)) / 0.5)
        hard = jax.nn.one_hot(soft.argmax(-1), 9, dtype=soft.dtype)
        z = hard + soft - lax.stop_gradient(soft)
        return jnp.sum(z * jnp.arange(9)), z

    return jax.grad(loss, has_aux=True)(x)


@of("f32[40,2]:scaled3", "f32[3]", "f32[3,2]:scaled3", "f32[3,2]")
def step_of_a_mixture(x: Array, w: Array, means: Array, logs: Array) -> tuple[Array, ...]:
    """Expectation and maximisation, of three normal densities."""
    apart = (x[:, None] - means) / jnp.exp(logs)
    joint = jax.nn.log_softmax(w) - jnp.square(apart).sum(-1) / 2 - logs.sum(-1)
    evidence = jax.nn.logsumexp(joint, axis=1, keepdims=True)
    share = jnp.exp(joint - evidence)
    number = share.sum(0) + 1e-6
    mean = (share.T @ x) / number[:, None]
    return number / 40, mean, (share.T @ (x * x)) / number[:, None] - mean * mean, evidence.mean()


@of("f32[24,6]", "f32[6,6]")
def dropped_layers(x: Array, w: Array) -> tuple[Array, Array]:
    def layer(h: Array, key: Array) -> tuple[Array, Array]:
        one, two = jax.random.split(key)
        kept = jax.random.bernoulli(one, 0.8, h.shape)
        deeper = h + jnp.where(kept, jax.nn.relu(h @ w) / 0.8, 0)
        return lax.cond(jax.random.uniform(two) < 0.7, lambda: deeper, lambda: h), h.mean()

    return lax.scan(layer, x, jax.random.split(jax.random.key(7), 5))
