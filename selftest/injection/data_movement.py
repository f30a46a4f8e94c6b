"""Bugs of data movement: wrong places, wrong order, lost elements, wrong loops over elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlo.values import Array
from interp.ops.elementwise import __all__ as _elementwise
from interp.values import Value
from selftest.injection.bug import Call, Family, given, operand, result

_moves = Family("data movement")
_loops = Family("loops over elements")
_sizes = Family("bounded dimensions")

_Strides = tuple[tuple[int, int, int], ...]


def _off_by(step: int) -> Any:
    """Make the bug of a slice that is shifted by some elements, where there is room."""

    def wrong(call: Call) -> Value:
        limits = call.operands[0].shape
        moved = tuple(
            (start + step, min(limit + step, size), stride)
            if start + step >= 0 and limit + step <= size
            else (start, limit, stride)
            for (start, limit, stride), size in zip(call.attributes["slice"], limits)
        )
        return None if moved == call.attributes["slice"] else call(slice=moved)

    return wrong


def _unstrided(slices: _Strides) -> _Strides | None:
    """Ignore the strides: read as many adjacent elements."""
    dense = tuple(
        (start, start + len(range(start, limit, stride)), 1) for start, limit, stride in slices
    )
    return None if dense == slices else dense


def _inverse(dimensions: tuple[int, ...]) -> tuple[int, ...] | None:
    inverse = tuple(int(d) for d in np.argsort(dimensions))
    return None if inverse == dimensions else inverse


def _identity(dimensions: tuple[int, ...]) -> tuple[int, ...] | None:
    identity = tuple(range(len(dimensions)))
    return None if identity == dimensions else identity


def _as_if_unmoved(call: Call) -> Value:
    """Treat a transpose as a bitcast."""
    right = call()
    return np.ascontiguousarray(call.operands[0]).reshape(right.shape)


def _by_columns(call: Call) -> Value:
    return call.operands[0].reshape(call().shape, order="F")


def _turned(dimensions: tuple[int, ...]) -> tuple[int, ...] | None:
    return tuple(reversed(dimensions)) if len(dimensions) > 1 else None


def _along_last(call: Call) -> Value:
    """Broadcast along the last dimensions, as NumPy would."""
    value, shape = call.operands[0], call.attributes["shape"]
    if not value.ndim or shape.dims[-value.ndim :] != value.shape:
        return None
    return np.broadcast_to(value, shape.dims)


def _along_first(call: Call) -> Value:
    value, dims = call.operands[0], call.attributes["shape"].dims
    if not value.ndim or dims[: value.ndim] != value.shape:
        return None
    return np.broadcast_to(value.reshape(*value.shape, *[1] * (len(dims) - value.ndim)), dims)


def _first(array: Array) -> Array | None:
    if array.size < 2:
        return None
    return np.broadcast_to(array.reshape(-1)[:1].reshape((1,) * array.ndim), array.shape)


_Padding = tuple[tuple[int, int, int], ...]


def _padding(change: Any) -> Any:
    def make(padding: _Padding) -> _Padding | None:
        changed = tuple(change(*one) for one in padding)
        return None if changed == padding else changed

    return given(padding=make)


def _filled(call: Call) -> Value:
    """Pad with another value, as if the padding were not initialised."""
    value = call.operands[1]
    garbage = np.ones_like(value) if not np.any(value == np.ones_like(value)) else value * 0
    return call(call.operands[0], np.asarray(garbage).astype(value.dtype))


def _at_edges(call: Call) -> Value:
    """Pad by repeating the element at the edge."""
    if any(low < 0 or high < 0 or inner for low, high, inner in call.attributes["padding"]):
        return None
    if not call.operands[0].size:
        return None
    widths = [(low, high) for low, high, _ in call.attributes["padding"]]
    return np.pad(call.operands[0], widths, mode="edge") if widths else None


def _other_dimension(call: Call) -> Value:
    shape, right = call.attributes["shape"], call.attributes["iota_dimension"]
    return call(iota_dimension=(right + 1) % shape.rank) if shape.rank > 1 else None


def _plus_one(array: Array) -> Array | None:
    return array + array.dtype.type(1) if array.dtype.kind in "iuf" else None


def _reversed_constant(array: Array) -> Array | None:
    return np.flip(array) if array.size > 1 else None


def _next_element(call: Call) -> Value:
    parts, index = call.operands[0], call.attributes["index"]
    return parts[(index + 1) % len(parts)]


def _rotated(call: Call) -> Value:
    return call(*call.operands[1:], call.operands[0]) if len(call.operands) > 1 else None


def _joined_elsewhere(call: Call) -> Value:
    right = call()
    for axis in range(right.ndim):
        if axis != call.attributes["dimensions"][0]:
            one = call.operands
            return np.concatenate([x.reshape(-1) for x in one]).reshape(right.shape)
    return None


def _last_again(call: Call) -> Value:
    one = call.operands
    same = len(one) > 1 and one[-1].shape == one[-2].shape
    return call(*one[:-1], one[-2]) if same else None


MOVES = (
    _moves("slice", "slice: starts one later", _off_by(1)),
    _moves("slice", "slice: starts one earlier", _off_by(-1)),
    _moves("slice", "slice: stride ignored", given(slice=_unstrided)),
    _moves("transpose", "transpose: inverse permutation", given(dimensions=_inverse)),
    _moves("transpose", "transpose: left out", given(dimensions=_identity)),
    _moves("transpose", "transpose: taken for a bitcast", _as_if_unmoved),
    _moves("reshape", "reshape: columns first", _by_columns),
    _moves("bitcast copy", "bitcast, copy: layout misread as transposed", _by_columns),
    _moves("reverse", "reverse: left out", lambda c: c.operands[0]),
    _moves("reverse", "reverse: of all dimensions", lambda c: np.flip(c.operands[0])),
    _moves("reverse", "reverse: rotated by one", lambda c: np.roll(
        c(), 1, c.attributes["dimensions"]) if c.attributes["dimensions"] else None),
    _moves("concatenate", "concatenate: order reversed", lambda c: c(*c.operands[::-1])),
    _moves("concatenate", "concatenate: rotated", _rotated),
    _moves("concatenate", "concatenate: one operand twice", _last_again),
    _moves("concatenate", "concatenate: in memory instead of along its dimension",
           _joined_elsewhere),
    _moves("broadcast", "broadcast: along the last dimensions", _along_last),
    _moves("broadcast", "broadcast: along the first dimensions", _along_first),
    _moves("broadcast", "broadcast: dimensions in reverse", given(dimensions=_turned)),
    _moves("broadcast", "broadcast: first element only", operand(0, _first)),
    _moves("pad", "pad: low and high exchanged", _padding(lambda low, h, i: (h, low, i))),
    _moves("pad", "pad: one place later", _padding(
        lambda low, h, i: (low + 1, h - 1, i) if low >= 0 and h > 0 else (low, h, i))),
    _moves("pad", "pad: one place earlier", _padding(
        lambda low, h, i: (low - 1, h + 1, i) if low > 0 else (low, h, i))),
    _moves("pad", "pad: negative padding at the other end", _padding(
        lambda low, h, i: (0, h + low, i) if low < 0 else (low + min(h, 0), max(h, 0), i))),
    _moves("pad", "pad: padding not written", _filled),
    _moves("pad", "pad: by the edge's elements", _at_edges),
    _moves("iota", "iota: of another dimension", _other_dimension),
    _moves("iota", "iota: from one", result(_plus_one)),
    _moves("iota", "iota: in 8 bits", result(
        lambda x: x.astype(np.int8).astype(x.dtype) if x.dtype.kind in "iuf" else None)),
    _moves("iota", "iota: backwards", lambda c: np.flip(c(), c.attributes["iota_dimension"])),
    _moves("constant", "constant: elements in reverse", result(_reversed_constant)),
    _moves("constant", "constant: first element for all", result(_first)),
    _moves("constant", "constant: through f16", result(
        lambda x: x.astype(np.float16).astype(x.dtype) if x.dtype.kind == "f" else None)),
    _moves("constant", "constant: in 8 bits", result(
        lambda x: x.astype(np.int8).astype(x.dtype) if x.dtype.kind in "iu" else None)),
    _moves("constant", "constant: zero", result(np.zeros_like)),
    _moves("get-tuple-element", "get-tuple-element: the next one", _next_element),
    _moves("tuple", "tuple: elements rotated", _rotated),
)  # fmt: skip


# Loops

_ELEMENTWISE = " ".join(
    name.rstrip("_").replace("_", "-") for name in _elementwise if name not in ("tuple_",)
)


def _tail(values: Array, count: int, fill: Any) -> Array | None:
    if values.size <= count:
        return None
    changed = np.array(values, order="C")
    changed.reshape(-1)[changed.size - count :] = fill
    return changed


def _after_vectors(values: Array) -> Array | None:
    """Zero the remainder after full vectors of 8 elements."""
    rest = values.size % 8
    return _tail(values, rest, np.zeros((), values.dtype)) if rest and values.size > 8 else None


def _halves(values: Array) -> Array | None:
    if values.size < 2:
        return None
    changed = np.array(values, order="C")
    flat = changed.reshape(-1)
    half = flat.size // 2
    flat[half : 2 * half] = flat[:half]
    return changed


def _transposed(values: Array) -> Array | None:
    squares = values.ndim > 1 and values.shape[-1] == values.shape[-2] > 1
    return values.swapaxes(-1, -2) if squares else None


def _row_again(values: Array) -> Array | None:
    if values.ndim < 2 or values.shape[-2] < 2 or not values.size:
        return None
    changed = np.array(values)
    changed[..., -1, :] = changed[..., -2, :]
    return changed


LOOPS = (
    _loops(_ELEMENTWISE, "last element not written", result(lambda x: _tail(x, 1, np.zeros(
        (), x.dtype)))),
    _loops(_ELEMENTWISE, "last element repeats the one before", result(lambda x: _tail(
        x, 1, x.reshape(-1)[-2]) if x.size > 1 else None)),
    _loops(_ELEMENTWISE, "rest after vectors of 8 not written", result(_after_vectors)),
    _loops(_ELEMENTWISE, "all elements one place further", result(
        lambda x: np.roll(x, 1) if x.size > 1 else None)),
    _loops(_ELEMENTWISE, "second half written by the first thread", result(_halves)),
    _loops(_ELEMENTWISE, "square written transposed", result(_transposed)),
    _loops(_ELEMENTWISE, "last row repeats the one before", result(_row_again)),
    _loops(_ELEMENTWISE, "first operand taken for a scalar", operand(0, _first)),
    _loops(_ELEMENTWISE, "last operand taken for a scalar", operand(-1, _first)),
    _loops(_ELEMENTWISE, "last operand one place further", operand(
        -1, lambda x: np.roll(x, 1) if x.size > 1 else None)),
    _loops(_ELEMENTWISE, "last operand read transposed", operand(-1, _transposed)),
)  # fmt: skip


def _bound(call: Call) -> Value:
    shape = call.instruction.shape
    right = call()
    bounds = getattr(shape, "dims", ())
    if right.shape == bounds or not right.ndim:
        return None
    widths = [(0, bound - size) for bound, size in zip(bounds, right.shape)]
    return np.pad(right, widths, mode="edge") if right.size else np.zeros(bounds, right.dtype)


SIZES = (
    _sizes("get-dimension-size", "get-dimension-size: one too many", result(_plus_one)),
    _sizes("set-dimension-size", "set-dimension-size: ignored, the padding is seen", _bound),
    _sizes("set-dimension-size", "set-dimension-size: one too few", operand(
        1, lambda size: size - size.dtype.type(1))),
    _sizes("dynamic-reshape", "dynamic-reshape: sizes exchanged", lambda c: c(
        c.operands[0], *c.operands[:0:-1])),
    _sizes("copy", "copy: first half only", result(lambda x: _tail(
        x, x.size // 2, np.zeros((), x.dtype)) if x.size > 1 else None)),
)  # fmt: skip

BUGS = (*MOVES, *LOOPS, *SIZES)
