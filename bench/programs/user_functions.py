"""Functions as users of JAX write them, of which each was slow for a reason that others share.

When they were written, before the reason was mended, in times of XLA's processor time with one
thread: ``conv_int8`` 48 (integers had no product of matrices), ``dot_1m`` and ``dots_of_a_batch``
some 90 times what they take now (factors of one result were packed), ``decoder_step`` 1.9 (fresh
pages for each result), ``logistic_map`` 1.8 and ``mandelbrot`` 0.6 (the state of a loop went
through memory), ``group_norm`` 1.6 (eight neighbours of a sum at a time), ``conjugate_gradients``
1.3 (short dots again). In times of its wall time with two threads: ``histogram`` 5.3 (threads that
skip the updates of others), ``cross_products`` 3.8 (a loop for each component, and a
transposition), ``polynomial`` 3.8 (a loop of one trip, and no multiply-add), ``softmax_gradient``
1.8 (a reduction of one element ended the row).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from bench.programs.recipes import Program, full, integers, normal, uniform


def logistic_map(x: Any) -> Any:
    """Iterate the logistic map a hundred times on each number."""
    return lax.fori_loop(0, 100, lambda _, x: 3.7 * x * (1 - x), x)


def newton(a: Any) -> Any:
    """Compute square roots by twelve steps of Newton's method."""
    return lax.fori_loop(0, 12, lambda _, x: 0.5 * (x + a / x), jnp.ones_like(a))


def mandelbrot(real: Any, imaginary: Any) -> Any:
    """Count the trips that points of the plane stay near the origin, of 64."""

    def step(state: Any) -> Any:
        x, y, count, trip = state
        inside = x * x + y * y < 4
        following = x * x - y * y + real, 2 * x * y + imaginary
        x, y = (jnp.where(inside, new, old) for new, old in zip(following, (x, y), strict=True))
        return x, y, count + inside.astype(jnp.int32), trip + 1

    zeros = jnp.zeros_like(real)
    start = zeros, zeros, jnp.zeros(real.shape, jnp.int32), 0
    return lax.while_loop(lambda state: state[3] < 64, step, start)[2]


def pendulums(angle: Any, speed: Any) -> Any:
    """Integrate damped pendulums by a hundred steps of Runge and Kutta's method."""
    h = 0.01

    def slope(angle: Any, speed: Any) -> Any:
        return speed, -jnp.sin(angle) - 0.1 * speed

    def step(state: Any, _: Any) -> Any:
        a = slope(*state)
        b = slope(*(s + h / 2 * k for s, k in zip(state, a, strict=True)))
        c = slope(*(s + h / 2 * k for s, k in zip(state, b, strict=True)))
        d = slope(*(s + h * k for s, k in zip(state, c, strict=True)))
        slopes = zip(state, a, b, c, d, strict=True)
        return tuple(s + h / 6 * (a + 2 * b + 2 * c + d) for s, a, b, c, d in slopes), None

    return lax.scan(step, (angle, speed), None, length=100)[0]


def conjugate_gradients(a: Any, right: Any) -> Any:
    """Solve a positive definite system by twenty steps: after fifty the residual may be 0."""
    a = a @ a.T / a.shape[0] + jnp.eye(a.shape[0])

    def step(_: Any, state: Any) -> Any:
        x, residual, direction, size = state
        moved = a @ direction
        length = size / (direction @ moved)
        x, residual = x + length * direction, residual - length * moved
        smaller = residual @ residual
        return x, residual, residual + smaller / size * direction, smaller

    start = jnp.zeros_like(right), right, right, right @ right
    return lax.fori_loop(0, 20, step, start)[0]


def group_norm(x: Any, scale: Any, shift: Any) -> Any:
    """Normalise 32 groups of channels of images, and apply SiLU."""
    grouped = x.reshape(*x.shape[:-1], 32, -1)
    mean = grouped.mean((1, 2, 4), keepdims=True)
    variance = grouped.var((1, 2, 4), keepdims=True)
    normal_x = ((grouped - mean) * lax.rsqrt(variance + 1e-5)).reshape(x.shape)
    return jax.nn.silu(normal_x * scale + shift)


def _turned(x: Any, place: Any) -> Any:
    """Turn pairs of features by angles that grow with the place (rotary embedding)."""
    half = x.shape[-1] // 2
    angle = place * 1e4 ** (-jnp.arange(half) / half)
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cosine - b * sine, a * sine + b * cosine], -1)


def decoder_step(x: Any, place: Any, *arrays: Any) -> Any:
    """Apply attention of one token to those before it, whose keys and values are in a cache."""
    *weights, out, keys, values = arrays
    _, _, heads, width = keys.shape
    query, key, value = ((x @ w).reshape(-1, heads, width) for w in weights)
    query, key = (_turned(one, place.astype(jnp.float32)) for one in (query, key))
    keys = lax.dynamic_update_slice(keys, key[:, None], (0, place, 0, 0))
    values = lax.dynamic_update_slice(values, value[:, None], (0, place, 0, 0))
    scores = jnp.einsum("bhd,bthd->bht", query, keys) / 8
    scores = jnp.where(jnp.arange(keys.shape[1]) <= place, scores, -jnp.inf)
    found = jnp.einsum("bht,bthd->bhd", jax.nn.softmax(scores), values)
    return found.reshape(x.shape) @ out, keys, values


def convolution_int8(x: Any, w: Any, groups: int = 1) -> Any:
    """Apply a 3×3 convolution of bytes to words."""
    return lax.conv_general_dilated(
        *(x, w, (1, 1), "SAME"),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
        preferred_element_type=jnp.int32,
    )


def histogram(values: Any) -> Any:
    """Count each of 256 values."""
    return jnp.zeros(256, jnp.int32).at[values].add(1)


def softmax_gradient(x: Any, weights: Any) -> Any:
    """Differentiate a weighted sum of probabilities."""
    return jax.grad(lambda x: (jax.nn.softmax(x) * weights).sum())(x)


def _bytes(*dims: int) -> list[Any]:
    """Make a recipe of bytes."""
    return ["randint", [*dims], "int8", -127, 128]


PROGRAMS = {
    "logistic_map": Program(logistic_map, [uniform(1000000)]),
    "newton_sqrt": Program(newton, [uniform(1000000, low=0.5, high=4.0)]),
    "mandelbrot": Program(
        mandelbrot, [uniform(512, 512, low=-2.0, high=0.5), uniform(512, 512, low=-1.0)]
    ),
    "pendulums": Program(pendulums, [normal(65536), normal(65536)]),
    "conjugate_gradients": Program(conjugate_gradients, [normal(256, 256), normal(256)]),
    "dot_1m": Program(lambda x, y: x @ y, [normal(1000000), normal(1000000)]),
    "dots_of_a_batch": Program(
        lambda x, y: jnp.einsum("bd,bd->b", x, y), [normal(20000, 96), normal(20000, 96)]
    ),
    "group_norm": Program(group_norm, [normal(4, 32, 32, 256), normal(256), normal(256)]),
    "decoder_step": Program(
        decoder_step,
        [
            normal(4, 512),
            full(value=100, dtype="int32"),
            *([normal(512, 512, scale=0.04)] * 4),
            *([normal(4, 256, 8, 64)] * 2),
        ],
    ),
    "conv_int8": Program(convolution_int8, [_bytes(2, 28, 28, 64), _bytes(3, 3, 64, 64)]),
    "histogram": Program(histogram, [integers(1000000, below=256)]),
    "cross_products": Program(jnp.cross, [normal(100000, 3), normal(100000, 3)]),
    "polynomial": Program(jnp.polyval, [normal(20), normal(1000000)]),
    "softmax_gradient": Program(softmax_gradient, [normal(1024, 1000), normal(1024, 1000)]),
    "depthwise_int8": Program(
        lambda x, w: convolution_int8(x, w, 96), [_bytes(2, 28, 28, 96), _bytes(3, 3, 1, 96)]
    ),
}
