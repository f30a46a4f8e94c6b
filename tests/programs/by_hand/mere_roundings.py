"""Values that are zero but for roundings, and what functions decide and make of them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from programs.function import of

_TONE = jnp.sin(2 * np.pi * jnp.arange(512) / 8)


def bands(count: int) -> Array:
    edges, places = np.linspace(0, 32, count + 2), np.arange(33)
    rising = (places[:, None] - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - places[:, None]) / (edges[2:] - edges[1:-1])
    return jnp.asarray(np.maximum(0, np.minimum(rising, falling)), jnp.float32)


def power(x: Array) -> Array:
    x = jnp.pad(x, 32, mode="reflect")
    places = jnp.arange(0, len(x) - 63, 16)[:, None] + jnp.arange(64)
    return jnp.abs(jnp.fft.rfft(x[places] * jnp.hanning(64).astype(x.dtype))) ** 2


def decibels(x: Array) -> Array:
    found = 10 * jnp.log10(jnp.maximum(power(x) @ bands(16).astype(x.dtype), 1e-10))
    return jnp.maximum(found, found.max() - 80)


@of("f32[]")
def mel_of_a_tone(a: Array) -> Array:
    return jnp.log(jnp.maximum(power(a * _TONE) @ bands(16), 1e-10))


@of("f32[]")
def gradient_of_mel_of_a_tone(a: Array) -> Array:
    return jax.grad(lambda x: jnp.log(jnp.maximum(power(x) @ bands(16), 1e-10)).sum())(a * _TONE)


@of("f32[]")
def gradient_of_decibels_of_a_tone(a: Array) -> Array:
    return jax.grad(lambda x: decibels(x).mean())(a * _TONE)


@of("f32[6,16]", "f32[16]")
def gradient_of_a_norm_of_equal_numbers(x: Array, scale: Array) -> Array:
    def normed(x: Array) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-12) * scale

    return jax.grad(lambda x: jnp.sin(normed(x)).sum())(jnp.broadcast_to(x[:, :1], x.shape) * 1.1)


@of("f32[5,8]")
def gradient_of_the_angle_of_parallel_vectors(x: Array) -> Array:
    def angle(x: Array) -> Array:
        y = x * 3
        cosine = (x * y).sum(-1) / jnp.linalg.norm(x, axis=-1) / jnp.linalg.norm(y, axis=-1)
        return jnp.arccos(jnp.clip(cosine, -1 + 1e-7, 1 - 1e-7)).sum()

    return jax.grad(angle)(x)


@of("f32[40]")
def rectified_differences(x: Array) -> tuple[Array, Array]:
    difference = x / 3 * 3 - x
    return jax.nn.relu(difference), jnp.sign(difference)


@of("f32[40]")
def gradient_of_a_rectified_difference(x: Array) -> Array:
    return jax.grad(lambda x: (jax.nn.relu(jnp.tanh(x) - jnp.sinh(x) / jnp.cosh(x)) * x).sum())(x)


@of("f32[6,10]")
def largest_of_equal_sums(x: Array) -> Array:
    sums = jnp.stack([x.sum(1), x[:, ::-1].sum(1), x[:, ::2].sum(1) + x[:, 1::2].sum(1)], 1)
    return jax.grad(lambda s: jnp.max(s, 1).sum())(sums)


@of("f32[8,8]", "f32[8]")
def residual_of_a_solution(a: Array, b: Array) -> Array:
    residual = a @ jnp.linalg.solve(a, b) - b
    return residual / jnp.maximum(jnp.linalg.norm(residual), 1e-7)


@of("f32[7,3]")
def distance_to_an_own_projection(a: Array) -> Array:
    q = jnp.linalg.qr(a)[0]
    return jnp.log(jnp.abs(a - q @ (q.T @ a)) + 1e-9)


@of("f32[32]")
def phase_of_a_real_transform(x: Array) -> Array:
    even = jnp.concatenate([x, x[:1], x[:0:-1]])
    return jnp.cos(jnp.angle(jnp.fft.fft(even)))


@of("f32[9]")
def variance_of_one_number(x: Array) -> tuple[Array, Array]:
    same = jnp.full((50,), x[0] * 1.7)
    deviation = jnp.std(same)
    return deviation > 0, (same - same.mean()) / (deviation + 1e-6)


@of("f32[20]")
def correlation_with_itself(x: Array) -> Array:
    return jnp.sqrt(jnp.maximum(1 - jnp.corrcoef(x, 2 * x + 1) ** 2, 0))


@of("f32[12,3]")
def distances_by_the_binomial(x: Array) -> Array:
    square = (x**2).sum(1)
    return jnp.sqrt(jnp.maximum(square[:, None] + square[None] - 2 * x @ x.T, 0))


@of("f32[12,3]")
def gradient_of_distances_by_the_binomial(x: Array) -> Array:
    def total(x: Array) -> Array:
        square = (x**2).sum(1)
        squared = jnp.maximum(square[:, None] + square[None] - 2 * x @ x.T, 1e-12)
        return jnp.exp(-jnp.sqrt(squared)).sum()

    return jax.grad(total)(x)
