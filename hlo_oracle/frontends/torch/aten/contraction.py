"""Operations of ATen that multiply matrices and convolve, with the gradients of convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from hlo_oracle.frontends.torch.aten.promotion import Operation, typed, unpromoted


def _mm(x: Any, y: Any) -> Any:
    return lax.dot_general(x, y, (((x.ndim - 1,), (0,)), ((), ())))


def _bmm(x: Any, y: Any) -> Any:
    return lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,))))


def _scaled(x: Any, factor: Any) -> Any:
    return x if factor == 1 else x * jnp.asarray(factor, x.dtype)


def _added(product: Any) -> Operation:
    """Make the operation ``beta * x + alpha * product(y, z)``; x is ignored where beta is 0."""

    def added(x: Any, y: Any, z: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        value = _scaled(product(y, z), alpha)
        return value if beta == 0 else _scaled(x, beta) + value

    return unpromoted(added)


def _linear(x: Any, weight: Any, bias: Any = None) -> Any:
    value = lax.dot_general(x, weight, (((x.ndim - 1,), (1,)), ((), ())))
    return value if bias is None else value + bias


def _each(numbers: Sequence[int] | int, count: int) -> tuple[int, ...]:
    """Expand a list of numbers to ``count`` dimensions: a single one holds for all."""
    given = (numbers,) if isinstance(numbers, int) else tuple(numbers)
    return given * count if len(given) == 1 else given


def convolved(x: Any, weight: Any, *parameters: Any) -> Any:
    """Convolve x[N, C, …] by weight[O, C/groups, …], or [C, O/groups, …] if transposed.

    The parameters are ATen's: stride, padding, dilation, transposed, output padding, groups.
    """
    stride, padding, dilation, transposed, output_padding, groups = parameters
    count = weight.ndim - 2
    stride, padding, dilation = (_each(p, count) for p in (stride, padding, dilation))
    is_batched = x.ndim == weight.ndim
    x = x if is_batched else x[None]
    if transposed:
        extra = _each(output_padding, count)
        reach = [d * (size - 1) for d, size in zip(dilation, weight.shape[2:], strict=True)]
        # A transposed convolution is the gradient of a convolution for its input: the stride
        # becomes dilation of x, and ``padding`` cuts from the full overlap, which is the reach.
        pads = [(r - p, r - p + e) for r, p, e in zip(reach, padding, extra, strict=True)]
        result = lax.conv_general_dilated(
            x, _turned(weight, groups), (1,) * count, pads, stride, dilation,
            feature_group_count=groups,
        )  # fmt: skip
    else:
        result = lax.conv_general_dilated(
            x, weight, stride, [(p, p) for p in padding], None, dilation,
            feature_group_count=groups,
        )  # fmt: skip
    return result if is_batched else result[0]


def _turned(weight: Any, groups: int) -> Any:
    """Convert the weights of a transposed convolution to those of the equal convolution: mirrored,
    with inputs and outputs exchanged in each group."""
    inputs, outputs, *window = weight.shape
    split = weight.reshape(groups, inputs // groups, outputs, *window)
    exchanged = jnp.swapaxes(split, 1, 2).reshape(groups * outputs, inputs // groups, *window)
    return jnp.flip(exchanged, tuple(range(2, weight.ndim)))


def _convolution(x: Any, weight: Any, bias: Any, *parameters: Any) -> Any:
    result = convolved(x, weight, *parameters)
    if bias is None:
        return result
    return result + bias.reshape(bias.shape + (1,) * (weight.ndim - 2))


def _convolution_backward(
    gradient: Any, x: Any, weight: Any, bias_sizes: Any, *rest: Any
) -> tuple[Any, ...]:
    """Compute those gradients of x, weight and bias that the last argument, a mask, asks for."""
    *parameters, wanted = rest
    result: list[Any] = [None, None, None]
    if wanted[0]:
        result[0] = jax.vjp(lambda x: convolved(x, weight, *parameters), x)[1](gradient)[0]
    if wanted[1]:
        result[1] = jax.vjp(lambda w: convolved(x, w, *parameters), weight)[1](gradient)[0]
    if wanted[2]:
        channels = gradient.ndim - weight.ndim + 1
        result[2] = jnp.sum(gradient, [n for n in range(gradient.ndim) if n != channels])
    return tuple(result)


def _attention(
    query: Any, key: Any, value: Any, is_causal: bool, mask: Any, scale: float | None
) -> tuple[Any, Any]:
    """Compute softmax(query @ key.T * scale + mask) @ value, and the logarithms of the softmax's
    sums. A row that is masked as a whole gives 0; scores of f16 and bf16 are f32
    (ATen/native/cpu/FlashAttentionKernel.cpp)."""
    wide = jnp.promote_types(query.dtype, "float32")
    query, key = query.astype(wide), key.astype(wide)
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    if key.shape[1] != query.shape[1]:  # grouped queries
        repeats = query.shape[1] // key.shape[1]
        key, value = (jnp.repeat(x, repeats, axis=1) for x in (key, value))
    scores = jnp.einsum("bhqd,bhkd->bhqk", query, key) * jnp.asarray(scale, wide)
    if is_causal:
        allowed = jnp.tri(scores.shape[-2], scores.shape[-1], dtype=bool)
        scores = jnp.where(allowed, scores, jnp.asarray(-jnp.inf, wide))
    if mask is not None:
        negative = jnp.asarray(-jnp.inf, wide)
        is_bool = mask.dtype == bool
        scores = jnp.where(mask, scores, negative) if is_bool else scores + mask.astype(wide)
    # The quotient does not depend on it: its gradient is 0, which JAX does not see.
    most = jax.lax.stop_gradient(jnp.max(scores, axis=-1, keepdims=True))
    most = jnp.where(most == -jnp.inf, jnp.zeros((), wide), most)
    weights = jnp.exp(scores - most)
    total = jnp.sum(weights, axis=-1, keepdims=True)
    total = jnp.where(total == 0, jnp.ones((), wide), total)
    result = jnp.einsum("bhqk,bhkd->bhqd", (weights / total).astype(value.dtype), value)
    return result, (most + jnp.log(total))[..., 0]


def _flash(
    query: Any, key: Any, value: Any, dropout_p: float = 0.0, is_causal: bool = False,
    *, attn_mask: Any = None, scale: float | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    if dropout_p:
        raise NotImplementedError("dropout inside of fused attention")
    return _attention(query, key, value, is_causal, attn_mask, scale)


def _flash_backward(
    gradient: Any, query: Any, key: Any, value: Any, *rest: Any, **named: Any
) -> tuple[Any, ...]:
    """Compute the gradients of query, key and value; ``rest`` is the result, the logarithms of
    sums, the dropout rate, and whether the mask is causal."""
    *_, dropout_p, is_causal = rest
    attn_mask, scale = named.get("attn_mask"), named.get("scale")
    if dropout_p:
        raise NotImplementedError("dropout inside of fused attention")

    def attended(query: Any, key: Any, value: Any) -> Any:
        return _attention(query, key, value, is_causal, attn_mask, scale)[0]

    gradients: tuple[Any, ...] = jax.vjp(attended, query, key, value)[1](gradient)
    return gradients


def _outer(result: Any, x: Any, y: Any, z: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    product = _scaled(jnp.outer(y, z).astype(result), alpha)
    return product if beta == 0 else _scaled(jnp.asarray(x, result), beta) + product


def _trilinear(
    x: Any, y: Any, z: Any, expand1: Sequence[int], expand2: Sequence[int], *rest: Any
) -> Any:
    """Sum x y z over dimensions, after each has dimensions of size 1 inserted; ``rest`` is those
    of z, and the dimensions of the sum."""
    expand3, sum_dimensions = rest[:2]
    x = jnp.expand_dims(x, tuple(expand1))
    y, z = jnp.expand_dims(y, tuple(expand2)), jnp.expand_dims(z, tuple(expand3))
    return jnp.sum(x * y * z, axis=tuple(sum_dimensions))


OPS: dict[str, Operation] = {
    "addbmm": _added(lambda y, z: jnp.sum(_bmm(y, z), axis=0)),
    "addmm": _added(_mm),
    "addmv": _added(_mm),
    "addr": typed(_outer),
    "baddbmm": _added(_bmm),
    "bmm": unpromoted(_bmm),
    "convolution": unpromoted(_convolution),
    "convolution_backward": unpromoted(_convolution_backward),
    "dot": unpromoted(_mm),
    "linear": unpromoted(_linear),
    "mm": unpromoted(_mm),
    "mv": unpromoted(_mm),
    "_trilinear": unpromoted(_trilinear),
    "vdot": unpromoted(lambda x, y: _mm(jnp.conj(x), y)),
    "_scaled_dot_product_flash_attention_for_cpu": unpromoted(_flash),
    "_scaled_dot_product_flash_attention_for_cpu_backward": unpromoted(_flash_backward),
}
