"""Operations of ATen that compute margin losses, with gradients."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from hlo_oracle.frontends.torch.aten.promotion import Operation, unpromoted

_NONE, _MEAN = range(2)  # of ATen's reductions; the third one is a sum


def _reduced(x: Any, reduction: int) -> Any:
    if reduction == _NONE:
        return x
    return jnp.mean(x) if reduction == _MEAN else jnp.sum(x)


def _positive(margin: Any) -> Any:
    """Return margins above 0, and 0 for all others, as for NaN."""
    return jnp.where(margin > 0, margin, jnp.zeros((), margin.dtype))


def _targets(target: Any) -> Any:
    """Mark the classes that target[N, C] lists in each row, before its first negative number."""
    listed = jnp.cumsum(target < 0, axis=-1) == 0
    classes = jnp.arange(target.shape[-1])
    return jnp.any((target[..., None] == classes) & listed[..., None], axis=-2)


def _multilabel(x: Any, target: Any, reduction: int) -> tuple[Any, Any]:
    """Compute Σ_(j listed) Σ_(i not listed) max(0, 1 - (x[j] - x[i])) / C of each row, and which
    classes are listed."""
    if not x.ndim:
        value, is_target = _multilabel(x.reshape(1), target.reshape(1), reduction)
        return value, is_target.reshape(target.shape)
    is_target = _targets(target)
    listed = jnp.cumsum(target < 0, axis=-1) == 0
    index = jnp.where(listed, target, 0)
    chosen = jnp.take_along_axis(x, index, axis=-1)
    margins = _positive(1 - chosen[..., :, None] + x[..., None, :]) / x.shape[-1]
    counts = listed[..., :, None] & ~is_target[..., None, :]
    rows = jnp.sum(jnp.where(counts, margins, jnp.zeros((), x.dtype)), axis=(-2, -1))
    return _reduced(rows, reduction), is_target.astype(x.dtype)


def _multilabel_backward(
    gradient: Any, x: Any, target: Any, reduction: int, is_target: Any
) -> Any:  # fmt: skip
    return jax.vjp(lambda y: _multilabel(y, target, reduction)[0], x)[1](gradient)[0]


def _multi_margin(x: Any, target: Any, p: Any, margin: Any, *rest: Any) -> Any:
    """Compute Σ_(i ≠ y) w[y] max(0, margin - x[y] + x[i])ᵖ / C of each row, y its target."""
    weight, reduction = rest
    x = x if x.ndim else x.reshape(1)
    rows = x.reshape(-1, x.shape[-1])
    index = target.reshape(-1, 1)
    chosen = jnp.take_along_axis(rows, index, axis=-1)
    margins = _positive(jnp.asarray(margin, x.dtype) - chosen + rows)
    # torch accepts no other p than 1 and 2.
    margins = margins if p == 1 else margins * margins
    if weight is not None:
        margins = margins * weight[index]
    others = jnp.arange(rows.shape[-1]) != index
    total = jnp.sum(jnp.where(others, margins, jnp.zeros((), x.dtype)), axis=-1) / x.shape[-1]
    return _reduced(total.reshape(x.shape[:-1]), reduction)


def _multi_margin_backward(gradient: Any, x: Any, target: Any, *rest: Any) -> Any:
    """Compute the gradient; ``rest`` is p, the margin, weights of classes, and the reduction."""
    given = (*rest, *(None, _MEAN)[len(rest) - 2 :])
    return jax.vjp(lambda y: _multi_margin(y, target, *given), x)[1](gradient)[0]


OPS: dict[str, Operation] = {
    "multi_margin_loss_backward": unpromoted(_multi_margin_backward),
    "multilabel_margin_loss_forward": unpromoted(_multilabel),
    "multilabel_margin_loss_backward": unpromoted(_multilabel_backward),
}
