"""Convolutions and pooling, and their gradients."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.signal as signal
from jax import Array, lax

from programs.function import of

_NHWC = ("NHWC", "HWIO", "NHWC")


def _convolved(x: Array, w: Array, stride: int = 1, padding: str = "SAME", **more: object) -> Array:
    strides = (stride, stride)
    return lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=_NHWC, **more)


def _pooled(x: Array) -> Array:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


@of("f32[4,14,14,8]", "f32[3,3,8,16]")
def convolution(x: Array, w: Array) -> Array:
    return _convolved(x, w)


@of("f32[2,15,15,4]", "f32[5,5,4,8]", "f32[8]")
def strided_convolution_with_bias(x: Array, w: Array, b: Array) -> Array:
    return jax.nn.relu(_convolved(x, w, 2, "VALID") + b)


@of("f32[2,12,12,8]", "f32[3,3,1,8]")
def depthwise_convolution(x: Array, w: Array) -> Array:
    return _convolved(x, w, feature_group_count=8)


@of("f32[2,12,12,3]", "f32[3,3,3,4]")
def dilated_convolution(x: Array, w: Array) -> Array:
    return _convolved(x, w, rhs_dilation=(2, 2))


@of("f32[2,6,6,4]", "f32[3,3,4,4]")
def transposed_convolution(x: Array, w: Array) -> Array:
    return lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=_NHWC)


@of("f32[4,10,10,3]", "f32[3,3,3,8]")
def gradients_of_convolution(x: Array, w: Array) -> tuple[Array, Array]:
    return jax.grad(lambda x, w: (_convolved(x, w) ** 2).mean(), (0, 1))(x, w)


@of("f32[4,12,12,6]")
def maximum_pooling(x: Array) -> Array:
    return _pooled(x)


@of("f32[4,12,12,6]", "f32[4,6,6,6]")
def gradient_of_maximum_pooling(x: Array, cotangent: Array) -> Array:
    return jax.grad(lambda x: (_pooled(x) * cotangent).sum())(x)


@of("f32[4,12,12,6]")
def average_pooling(x: Array) -> Array:
    return lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME") / 9


@of("f32[4,12,12,6]", "f32[4,6,6,6]")
def gradient_of_average_pooling(x: Array, cotangent: Array) -> Array:
    def pooled(x: Array) -> Array:
        return lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "SAME") / 4

    return jax.vjp(pooled, x)[1](cotangent)[0]


@of("f32[8,12,12,1]", "f32[3,3,1,8]", "f32[288,10]", "s32[8]:below10")
def gradients_of_a_small_net(x: Array, w: Array, v: Array, labels: Array) -> tuple[Array, Array]:
    def loss(w: Array, v: Array) -> Array:
        hidden = _pooled(jax.nn.relu(_convolved(x, w))).reshape(8, -1)
        scores = jax.nn.log_softmax(hidden @ v / 17)
        return -jnp.take_along_axis(scores, labels[:, None], 1).mean()

    return jax.grad(loss, (0, 1))(w, v)


@of("f32[200]", "f32[15]")
def filtered_signal(x: Array, w: Array) -> tuple[Array, Array]:
    return jnp.convolve(x, w, mode="same"), jnp.correlate(x, w, mode="valid")


@of("f32[20,20]", "f32[3,3]")
def filtered_image(x: Array, w: Array) -> Array:
    return signal.convolve2d(x, w, mode="same")


@of("f32[2,30,4]", "f32[5,4,6]")
def causal_convolution(x: Array, w: Array) -> Array:
    return lax.conv_general_dilated(x, w, (1,), [(4, 0)], dimension_numbers=("NWC", "WIO", "NWC"))


@of("f32[1,6,6,6,2]", "f32[3,3,3,2,4]")
def convolution_of_volumes(x: Array, w: Array) -> Array:
    dimensions = ("NDHWC", "DHWIO", "NDHWC")
    return lax.conv_general_dilated(x, w, (1, 1, 1), "SAME", dimension_numbers=dimensions)


@of("f32[2,8,8,4]", "f32[3,3,4,4]", "f32[3,3,4,4]")
def residual_block(x: Array, w: Array, v: Array) -> Array:
    def normalised(y: Array) -> Array:
        mean, variance = y.mean((0, 1, 2)), y.var((0, 1, 2))
        return (y - mean) * lax.rsqrt(variance + 1e-5)

    hidden = jax.nn.relu(normalised(_convolved(x, w)))
    return jax.nn.relu(x + normalised(_convolved(hidden, v)))


@of("f32[2,16,16,3]")
def resized_images(x: Array) -> tuple[Array, Array]:
    return (
        jax.image.resize(x, (2, 8, 8, 3), "linear"),
        jax.image.resize(x, (2, 24, 24, 3), "cubic"),
    )


@of("s8[2,8,8,4]", "s8[3,3,4,8]")
def convolution_of_int8(x: Array, w: Array) -> Array:
    return _convolved(x, w, preferred_element_type=jnp.int32)


@of("f32[12,12]")
def opening_and_closing(x: Array) -> tuple[Array, Array]:
    def least(x: Array) -> Array:
        return lax.reduce_window(x, jnp.inf, lax.min, (3, 3), (1, 1), "SAME")

    def greatest(x: Array) -> Array:
        return lax.reduce_window(x, -jnp.inf, lax.max, (3, 3), (1, 1), "SAME")

    return greatest(least(x)), least(greatest(x))
