"""Bugs of dot, convolution and ragged-dot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hlo.attributes import Window, WindowDimension
from hlo.values import Array
from interp.exact.conversion import type_of
from interp.values import Value
from selftest.injection.bug import BF16, F16, F32, F64, Call, Family, operand, result
from selftest.injection.reductions import WINDOW_CHANGES, changed_window

_dots = Family("contractions")
_convolutions = Family("convolutions")

_BOTH = "dot convolution"


def _dims(call: Call, side: str) -> tuple[int, ...]:
    found: tuple[int, ...] = call.attributes.get(f"{side}_contracting_dims", ())
    return found


def _other_contracting(side: str) -> Any:
    """Make the bug of contracting another dimension of the same size."""

    def wrong(call: Call) -> Value:
        value = call.operands[side == "rhs"]
        mine, batch = _dims(call, side), call.attributes.get(f"{side}_batch_dims", ())
        for axis in range(value.ndim):
            free = axis not in mine and axis not in batch
            if len(mine) == 1 and free and value.shape[axis] == value.shape[mine[0]] > 1:
                return call(**{f"{side}_contracting_dims": (axis,)})
        return None

    return wrong


def _terms(begin: int, end: int | None) -> Any:
    """Make the bug of summing only the terms begin..end of the first contracted dimension."""

    def wrong(call: Call) -> Value:
        axes = [_dims(call, side) for side in ("lhs", "rhs")]
        if not axes[0] or call.operands[0].shape[axes[0][0]] < 2:
            return None
        parts = []
        for value, mine in zip(call.operands[:2], axes):
            part: list[Any] = [np.s_[:]] * value.ndim
            part[mine[0]] = np.s_[begin:end]
            parts.append(value[tuple(part)])
        return call(*parts, *call.operands[2:])

    return wrong


def _last_term_twice(call: Call) -> Value:
    axes = [_dims(call, side) for side in ("lhs", "rhs")]
    if not axes[0] or not call.operands[0].shape[axes[0][0]]:
        return None
    pairs = zip(call.operands[:2], axes)
    return call(*(np.concatenate([x, x.take([-1], mine[0])], mine[0]) for x, mine in pairs))


def _first_batch(number: int) -> Any:
    side = ("lhs", "rhs")[number]

    def wrong(call: Call) -> Value:
        batch = call.attributes.get(f"{side}_batch_dims", ())
        value = call.operands[number]
        if not batch or value.shape[batch[0]] < 2:
            return None
        first = np.broadcast_to(value.take([0], batch[0]), value.shape)
        return call(*(first if n == number else x for n, x in enumerate(call.operands)))

    return wrong


def _conjugated(value: Array) -> Array | None:
    return value.conj() if value.dtype.kind == "c" else None


def _real(value: Array) -> Array | None:
    return value.real.astype(value.dtype) if value.dtype.kind == "c" else None


def _narrow(dtype: np.dtype[Any], wide: np.dtype[Any] = F32) -> Any:
    """Make the bug of rounding factors to a narrower type; their products are summed correctly."""

    def wrong(call: Call) -> Value:
        if not any(x.dtype == wide for x in call.operands[:2]):
            return None
        return call(*(x.astype(dtype).astype(wide) if x.dtype == wide else x
                      for x in call.operands))  # fmt: skip

    return wrong


def _summed_in(dtype: np.dtype[Any]) -> Any:
    """Make the bug of summing f32 products one by one in a narrow type."""

    def wrong(call: Call) -> Value:
        left, right = call.operands[:2]
        axes = [_dims(call, side) for side in ("lhs", "rhs")]
        if left.dtype != F32 or right.dtype != F32 or len(axes[0]) != 1:
            return None
        count = left.shape[axes[0][0]]
        shape = call().shape
        total = np.zeros(shape, dtype)
        for k in range(count):
            one = call(left.take([k], axes[0][0]), right.take([k], axes[1][0]))
            total = (total.astype(F32) + one).astype(dtype)
        return total.astype(call().dtype)

    return wrong


def _saturating(call: Call) -> Value:
    right = call()
    if right.dtype.kind not in "iu" or right.dtype.itemsize < 2:
        return None
    limits = np.iinfo(f"{right.dtype.kind}{right.dtype.itemsize // 2}")
    return np.clip(right, limits.min, limits.max).astype(right.dtype)


def _transposed(right: Array) -> Array | None:
    square = right.ndim > 1 and right.shape[-1] == right.shape[-2] > 1
    return right.swapaxes(-1, -2) if square else None


def _not_cleared(right: Array) -> Array | None:
    """Add one, as if the accumulator had not been cleared."""
    kind = right.dtype.kind
    return right + np.ones((), right.dtype) if kind in "iufc" or kind == "V" else None


def _last_row(right: Array) -> Array | None:
    if right.ndim < 2 or right.shape[-2] < 2 or type_of(right).kind == "pred":
        return None
    changed = np.array(right)
    changed[..., -1, :] = np.zeros((), right.dtype)
    return changed


DOTS = (
    *(bug for side in ("lhs", "rhs") for bug in _dots.each(
        "dot", f"another dimension of {side} contracted", _other_contracting(side))),
    _dots("dot ragged-dot", "dot: last term left out", _terms(0, -1)),
    _dots("dot ragged-dot", "dot: first term left out", _terms(1, None)),
    _dots("dot", "dot: last term counted twice", _last_term_twice),
    _dots("dot", "dot: first batch of lhs for all", _first_batch(0)),
    _dots("dot", "dot: first batch of rhs for all", _first_batch(1)),
    *_dots.each(_BOTH, "lhs conjugated", operand(0, _conjugated)),
    *_dots.each(_BOTH, "imaginary part of rhs dropped", operand(1, _real)),
    *_dots.each(_BOTH, "f32 factors in bf16", _narrow(BF16)),
    *_dots.each(_BOTH, "f32 factors in f16", _narrow(F16)),
    *_dots.each(_BOTH, "f64 factors in f32", _narrow(F32, F64)),
    _dots("dot", "dot: summed in bf16", _summed_in(BF16)),
    _dots("dot", "dot: summed in f16", _summed_in(F16)),
    *_dots.each(_BOTH, "integers saturate at half the width", _saturating),
    *_dots.each(_BOTH, "result transposed", result(_transposed)),
    *_dots.each(_BOTH, "accumulators not cleared", result(_not_cleared)),
    *_dots.each(_BOTH, "last row left out", result(_last_row)),
    _dots("ragged-dot", "ragged-dot: groups one later", lambda c: c(
        *c.operands[:2], np.roll(c.operands[2], 1))),
    _dots("ragged-dot", "ragged-dot: groups of one size", lambda c: c(
        *c.operands[:2], np.full_like(c.operands[2], max(1, int(np.mean(c.operands[2])))))
        if c.operands[2].size else None),
    _dots("ragged-dot", "ragged-dot: first group's matrix for all", lambda c: c(
        c.operands[0], np.broadcast_to(c.operands[1].take([0], axis), c.operands[1].shape),
        c.operands[2])
        if (axis := next(iter(c.attributes.get("rhs_group_dims", ())), None)) is not None
        and c.operands[1].shape[axis] else None),
    _dots("scaled-dot", "scaled-dot: scales of lhs ignored", operand(2, lambda x: np.ones_like(x))),
    _dots("scaled-dot", "scaled-dot: scales of rhs ignored", operand(3, lambda x: np.ones_like(x))),
)  # fmt: skip


def _spatial(call: Call) -> Window:
    """Return the window of a convolution, which the text omits where it is trivial."""
    window: Window = call.attributes.get("window", Window())
    labels = call.attributes["dim_labels"]
    sizes = [call.operands[1].shape[d] for d in labels.kernel_spatial]
    return window if window.dimensions else Window(tuple(map(WindowDimension, sizes)))


def _window(change: Any) -> Any:
    def wrong(call: Call) -> Value:
        labels = call.attributes["dim_labels"]
        extents = tuple(call.operands[0].shape[d] for d in labels.input_spatial)
        window = changed_window(_spatial(call), extents, change)
        return None if window is None else call(window=window)

    return wrong


def _turned_kernel(call: Call) -> Value:
    window = _spatial(call)
    turned = Window(tuple(replace(d, reversal=not d.reversal) for d in window.dimensions))
    return None if turned == window else call(window=turned)


def _labels(**attributes: Any) -> Any:
    """Make the bug of other dimension labels, each a function of all."""

    def wrong(call: Call) -> Value:
        labels = call.attributes["dim_labels"]
        changed = {name: change(labels) for name, change in attributes.items()}
        return call(dim_labels=replace(labels, **changed))

    return wrong


def _rotated(axis_of: str, number: int) -> Any:
    """Make the bug of rotating one operand's features or batches by one."""

    def wrong(call: Call) -> Value:
        axis = getattr(call.attributes["dim_labels"], axis_of)
        if call.operands[number].shape[axis] < 2:
            return None
        return call(*(np.roll(x, 1, axis) if n == number else x
                      for n, x in enumerate(call.operands)))  # fmt: skip

    return wrong


def _interleaved(call: Call) -> Value:
    """Interleave the features of different groups."""
    groups = call.attributes.get("feature_group_count", 1)
    axis = call.attributes["dim_labels"].input_feature
    size = call.operands[0].shape[axis]
    if groups < 2 or size // groups < 2:
        return None
    order = np.arange(size).reshape(size // groups, groups).T.reshape(-1)
    return call(call.operands[0].take(order, axis), call.operands[1])


def _first_group(call: Call) -> Value:
    groups = call.attributes.get("feature_group_count", 1)
    axis = call.attributes["dim_labels"].kernel_output_feature
    size = call.operands[1].shape[axis]
    if groups < 2 or not size:
        return None
    order = np.arange(size) % (size // groups)
    return call(call.operands[0], call.operands[1].take(order, axis))


CONVOLUTIONS = (
    *(bug for name, change in WINDOW_CHANGES.items() if "element" not in name
      for bug in _convolutions.each("convolution", name, _window(change))),
    _convolutions("convolution", "convolution: kernel reversed, or not", _turned_kernel),
    _convolutions("convolution", "convolution: kernel transposed", _labels(
        kernel_spatial=lambda labels: labels.kernel_spatial[::-1])),
    _convolutions("convolution", "convolution: input transposed", _labels(
        input_spatial=lambda labels: labels.input_spatial[::-1])),
    _convolutions("convolution", "convolution: output transposed", _labels(
        output_spatial=lambda labels: labels.output_spatial[::-1])),
    _convolutions("convolution", "convolution: kernel's features exchanged", _labels(
        kernel_input_feature=lambda labels: labels.kernel_output_feature,
        kernel_output_feature=lambda labels: labels.kernel_input_feature)),
    _convolutions("convolution", "convolution: input features rotated",
                  _rotated("input_feature", 0)),
    _convolutions("convolution", "convolution: output features rotated",
                  _rotated("kernel_output_feature", 1)),
    _convolutions("convolution", "convolution: batches rotated", _rotated("input_batch", 0)),
    _convolutions("convolution", "convolution: groups interleaved", _interleaved),
    _convolutions("convolution", "convolution: first group's kernel for all", _first_group),
)  # fmt: skip

BUGS = (*DOTS, *CONVOLUTIONS)
