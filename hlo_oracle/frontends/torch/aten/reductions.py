"""Operations of ATen that reduce and scan along dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from hlo_oracle.frontends.torch.aten.promotion import Operation, typed, unpromoted

Dimensions = int | Sequence[int] | None


def _axes(x: Any, dim: Dimensions) -> int | tuple[int, ...] | None:
    """Convert PyTorch's dimensions to NumPy's axes: none means all. A scalar has dimension 0."""
    if dim is None or not x.ndim:
        return None
    return dim if isinstance(dim, int) else tuple(dim) or None


def _wide(function: Callable[..., Any]) -> Operation:
    """Make a reduction whose operand is converted to the result's type first."""

    def operation(
        result: Any, x: Any, dim: Dimensions = None, keepdim: bool = False, *, dtype: Any = None
    ) -> Any:
        return function(jnp.asarray(x, result), axis=_axes(x, dim), keepdims=keepdim)

    return operation


def _same(function: Callable[..., Any]) -> Operation:
    def reduced(x: Any, dim: Dimensions = None, keepdim: bool = False) -> Any:
        return function(x, axis=_axes(x, dim), keepdims=keepdim)

    return unpromoted(reduced)


def _picked(best: Callable[..., Any], place: Callable[..., Any]) -> Operation:
    """Make ``max`` or ``min``: of all elements, or along a dimension with the indices."""

    def picked(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        if dim is None:
            return best(x)
        if not x.ndim:
            return x, jnp.zeros((), "int64")
        places = place(x, axis=dim, keepdims=keepdim)
        return best(x, axis=dim, keepdims=keepdim), places

    return unpromoted(picked)


def _place(function: Callable[..., Any]) -> Operation:
    def placed(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        if not x.ndim:
            return jnp.zeros((), "int64")
        return function(x, axis=dim, keepdims=keepdim)

    return unpromoted(placed)


def _moments(x: Any, dim: Dimensions, correction: Any, keepdim: bool) -> tuple[Any, Any]:
    """Compute variance and mean, subtracting the mean before squares are summed."""
    axis = _axes(x, dim)
    mean = jnp.mean(x, axis=axis, keepdims=True)
    distance = x - mean
    squares = jnp.real(distance * jnp.conj(distance)) if jnp.iscomplexobj(x) else distance**2
    count = x.size // max(mean.size, 1)
    divisor = max(count - (1 if correction is None else correction), 0)
    total = jnp.sum(squares, axis=axis, keepdims=keepdim)
    # Of no degrees of freedom the variance is NaN, or infinite.
    variance = total / jnp.asarray(divisor, total.dtype)
    return variance, mean if keepdim else jnp.reshape(mean, variance.shape)


def _var(x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, **named: Any) -> Any:
    return _variance(x, dim, unbiased, keepdim, **named)[0]


def _std(x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, **named: Any) -> Any:
    return jnp.sqrt(_variance(x, dim, unbiased, keepdim, **named)[0])


def _variance(
    x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> Any:
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    if unbiased is not None:  # of prims.var it is the correction, perhaps a fraction
        correction = unbiased
    return _moments(x, dim, correction, keepdim)


def _weight_norm_backward(gradient: Any, v: Any, g: Any, norms: Any, dim: int) -> tuple[Any, Any]:
    """Compute the gradients of w = g v / |v|, where |v| is of all dimensions but one."""
    axes = tuple(n for n in range(v.ndim) if n != dim % v.ndim)
    norms = norms.reshape(g.shape)
    along = jnp.sum(gradient * v, axis=axes, keepdims=True).reshape(g.shape)
    return g / norms * (gradient - v * (along / (norms * norms))), along / norms


def _cumulative(function: Callable[..., Any]) -> Operation:
    def operation(result: Any, x: Any, dim: int, *, dtype: Any = None) -> Any:
        x = jnp.asarray(x, result)
        return function(x, dim % x.ndim) if x.ndim else x

    return operation


def _extreme(is_before: Callable[[Any, Any], Any]) -> Operation:
    """Make ``cummax`` or ``cummin``: the running extreme, and its last index."""

    def operation(result: Any, x: Any, dim: int) -> Any:
        if not x.ndim:
            return x, jnp.zeros((), "int64")
        axis = dim % x.ndim
        places = lax.broadcasted_iota(jnp.dtype("int64"), x.shape, axis)

        def better(left: Any, right: Any) -> Any:
            # Strict, so that of equal elements the later one wins; so does the later NaN.
            keeps = is_before(left[0], right[0])
            if jnp.issubdtype(x.dtype, jnp.inexact):
                keeps = (keeps | jnp.isnan(left[0])) & ~jnp.isnan(right[0])
            return tuple(jnp.where(keeps, a, b) for a, b in zip(left, right, strict=True))

        return lax.associative_scan(better, (x, places), axis=axis)

    return operation


def vector_norm(
    result: Any,
    x: Any,
    ord: float = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Any:
    """Compute a vector norm over all elements or along dimensions."""
    axis = _axes(x, dim)
    size = _float(jnp.asarray(jnp.abs(x), result))
    if ord in (float("inf"), float("-inf")):
        return (jnp.max if ord > 0 else jnp.min)(size, axis=axis, keepdims=keepdim)
    if ord == 0:
        return jnp.sum(jnp.asarray(size != 0, size.dtype), axis=axis, keepdims=keepdim)
    if ord == 1:
        return jnp.sum(size, axis=axis, keepdims=keepdim)
    if ord == 2:
        return jnp.sqrt(jnp.sum(size * size, axis=axis, keepdims=keepdim))
    total = jnp.sum(size ** jnp.asarray(ord, size.dtype), axis=axis, keepdims=keepdim)
    return total ** jnp.asarray(1 / ord, size.dtype)


def _softmax(x: Any, dim: int, half_to_float: bool = False) -> Any:
    return jax.nn.softmax(_float(x), axis=dim) if x.ndim else jnp.ones_like(x)


def _log_softmax(x: Any, dim: int, half_to_float: bool = False) -> Any:
    return jax.nn.log_softmax(_float(x), axis=dim) if x.ndim else jnp.zeros_like(x)


def _float(x: Any) -> Any:
    """Convert narrow floats to f32, the type in which PyTorch computes; the result is narrow
    again."""
    return x.astype("float32") if x.dtype.itemsize < 4 else x


def _softmax_backward(result: Any, gradient: Any, output: Any, dim: int, dtype: Any) -> Any:
    gradient, output = _float(gradient), _float(output)
    product = gradient * output
    return product - output * jnp.sum(product, axis=dim, keepdims=True) if output.ndim else product


def _log_softmax_backward(result: Any, gradient: Any, output: Any, dim: int, dtype: Any) -> Any:
    gradient, output = _float(gradient), _float(output)
    axis = dim if output.ndim else None
    return gradient - jnp.exp(output) * jnp.sum(gradient, axis=axis, keepdims=True)


OPS: dict[str, Operation] = {
    "all": _same(jnp.all),
    "amax": _same(jnp.max),
    "amin": _same(jnp.min),
    "any": _same(jnp.any),
    "_is_all_true": unpromoted(jnp.all),
    "_is_any_true": unpromoted(jnp.any),
    "argmax": _place(jnp.argmax),
    "argmin": _place(jnp.argmin),
    "aminmax": unpromoted(
        lambda x, *, dim=None, keepdim=False: (
            jnp.min(x, axis=dim, keepdims=keepdim),
            jnp.max(x, axis=dim, keepdims=keepdim),
        )
    ),
    "cummax": _extreme(jnp.greater),
    "cummin": _extreme(jnp.less),
    "cumprod": _cumulative(lax.cumprod),
    "cumsum": _cumulative(lax.cumsum),
    "count_nonzero": unpromoted(lambda x, dim=None: jnp.count_nonzero(x, axis=_axes(x, dim))),
    "linalg_vector_norm": typed(vector_norm),
    "logcumsumexp": _cumulative(lax.cumlogsumexp),
    "logsumexp": unpromoted(
        lambda x, dim, keepdim=False: jax.nn.logsumexp(x, axis=_axes(x, dim), keepdims=keepdim)
    ),
    "max": _picked(jnp.max, jnp.argmax),
    "max.other": typed(lambda result, x, y: jnp.maximum(jnp.asarray(x, result), y)),
    "mean": _wide(jnp.mean),
    "min": _picked(jnp.min, jnp.argmin),
    "min.other": typed(lambda result, x, y: jnp.minimum(jnp.asarray(x, result), y)),
    "prod": _wide(jnp.prod),
    "std": unpromoted(_std),
    "sum": _wide(jnp.sum),
    "var": unpromoted(_var),
    "_weight_norm_interface_backward": unpromoted(_weight_norm_backward),
    "var_mean": unpromoted(_variance),
    "_softmax": unpromoted(_softmax),
    "_log_softmax": unpromoted(_log_softmax),
    "_safe_softmax": unpromoted(lambda x, dim, dtype=None: _safe_softmax(x, dim)),
    "_softmax_backward_data": typed(_softmax_backward),
    "_log_softmax_backward_data": typed(_log_softmax_backward),
}


def _safe_softmax(x: Any, dim: int) -> Any:
    """Compute a softmax that is 0 where all operands are -inf, as for a fully masked row of
    attention."""
    masked = jnp.all(x == -jnp.inf, axis=dim, keepdims=True)
    return jnp.where(masked, jnp.zeros((), x.dtype), _softmax(x, dim))
