"""Bugs of folds, windows and scans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from hlo.attributes import Window, WindowDimension
from hlo.values import Array
from hlo.walk import Callee
from interp.values import Value
from interp.windows import positions
from selftest.injection.bug import BF16, F16, F32, F64, Call, Family, result

_folds = Family("reductions")
_windows = Family("windows")

_IDENTITIES: dict[str | None, Callable[[np.dtype[Any]], Any]] = {
    "add": lambda dtype: 0,
    "multiply": lambda dtype: 1,
    "maximum": lambda dtype: _limit(dtype, -1),
    "minimum": lambda dtype: _limit(dtype, 1),
    "and": lambda dtype: True if dtype == np.bool_ else -1,
    "or": lambda dtype: 0,
    "xor": lambda dtype: 0,
}


def _limit(dtype: np.dtype[Any], sign: int) -> Any:
    if dtype == np.bool_:
        return sign > 0
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return info.max if sign > 0 else info.min
    return sign * np.inf


def _halves(call: Call) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    count = len(call.operands) // 2
    return call.operands[:count], call.operands[count:]


def _inits(make: Callable[[str | None, Array], Any]) -> Any:
    """Make the bug of other initial values."""

    def wrong(call: Call) -> Value:
        inputs, inits = _halves(call)
        made = [make(call.attributes["to_apply"].monoid, init) for init in inits]
        if any(one is None for one in made):
            return None
        return call(*inputs, *(np.full_like(i, one) for i, one in zip(inits, made)))

    return wrong


def _identity(monoid: str | None, init: Array) -> Any:
    make = _IDENTITIES.get(monoid)
    if make is None or init.dtype.kind not in "biufcV":
        return None
    one = make(init.dtype)
    return np.asarray(one).astype(init.dtype)


def _twice(call: Call) -> Value:
    """Combine the result with the init once more, as if each thread began with it."""
    inputs, inits = _halves(call)
    if len(inputs) > 1:
        return None
    right = call()
    return np.asarray(call.attributes["to_apply"](np.broadcast_to(inits[0], right.shape), right))


def _cut(begin: int, end: int | None) -> Any:
    """Make the bug of folding only the elements begin..end of the first reduced dimension."""

    def wrong(call: Call) -> Value:
        inputs, inits = _halves(call)
        axes = call.attributes["dimensions"]
        if not axes or inputs[0].shape[axes[0]] < 2:
            return None
        part: list[Any] = [np.s_[:]] * inputs[0].ndim
        part[axes[0]] = np.s_[begin:end]
        return call(*(x[tuple(part)] for x in inputs), *inits)

    return wrong


def _last_twice(call: Call) -> Value:
    inputs, inits = _halves(call)
    axes = call.attributes["dimensions"]
    if not axes or inputs[0].shape[axes[0]] < 1:
        return None
    return call(*(np.concatenate([x, x.take([-1], axes[0])], axes[0]) for x in inputs), *inits)


def _other_dimension(call: Call) -> Value:
    inputs, _ = _halves(call)
    axes, rank = call.attributes["dimensions"], inputs[0].ndim
    for axis in range(rank):
        if len(axes) == 1 and axis != axes[0]:
            found = call(dimensions=(axis,))
            first = found[0] if isinstance(found, tuple) else found
            right = call()
            if first.shape == (right[0] if isinstance(right, tuple) else right).shape:
                return found
    return None


def _not_at_all(call: Call) -> Value:
    """Return the first element in place of the fold."""
    inputs, _ = _halves(call)
    axes = call.attributes["dimensions"]
    if not inputs[0].size:
        return None
    index = tuple(0 if axis in axes else np.s_[:] for axis in range(inputs[0].ndim))
    found = tuple(x[index] for x in inputs)
    return found if len(found) > 1 else found[0]


def _accumulated(narrow: np.dtype[Any], wide: np.dtype[Any]) -> Any:
    """Make the bug of rounding every partial sum to a narrower type."""

    def wrong(call: Call) -> Value:
        (values, *_), inits = _halves(call)
        axes = call.attributes["dimensions"]
        if values.dtype != wide or call.attributes["to_apply"].monoid != "add":
            return None
        kept = [axis for axis in range(values.ndim) if axis not in axes]
        rows = values.transpose(*axes, *kept).reshape(-1, *(values.shape[a] for a in kept))
        total = np.broadcast_to(inits[0].astype(narrow), rows.shape[1:])
        for row in rows:
            total = (total.astype(wide) + row.astype(narrow).astype(wide)).astype(narrow)
        return total.astype(wide)

    return wrong


def _without_nan(call: Call) -> Value:
    inputs, inits = _halves(call)
    monoid = call.attributes["to_apply"].monoid
    if monoid not in ("maximum", "minimum") or inputs[0].dtype.kind != "f":
        return None
    none = np.asarray(_limit(inputs[0].dtype, -1 if monoid == "maximum" else 1))
    return call(np.where(np.isnan(inputs[0]), none.astype(inputs[0].dtype), inputs[0]), *inits)


def _other(monoids: dict[str, Callable[..., Array]]) -> Any:
    """Make the bug of another computation, by the monoid of the right one."""

    def wrong(call: Call) -> Value:
        to_apply = call.attributes["to_apply"]
        function = monoids.get(to_apply.monoid or "")
        if function is None or len(call.operands) != 2 or call.operands[0].dtype.kind == "V":
            return None
        inputs, inits = _halves(call)
        axes = call.attributes["dimensions"]
        kept = [axis for axis in range(inputs[0].ndim) if axis not in axes]
        rows = inputs[0].transpose(*axes, *kept)
        rows = rows.reshape(-1, *(inputs[0].shape[axis] for axis in kept))
        total = np.broadcast_to(inits[0], rows.shape[1:])
        for row in rows:
            total = function(total, row)
        return np.asarray(total).astype(inits[0].dtype)

    return wrong


def _backwards(call: Call) -> Value:
    """Fold in reverse order: with several results, the last of tied elements wins."""
    inputs, inits = _halves(call)
    if len(inputs) < 2:
        return None
    return call(*(np.flip(x, call.attributes["dimensions"]) for x in inputs), *inits)


def _indices_left(call: Call) -> Value:
    """Leave the second result at its init."""
    inputs, inits = _halves(call)
    if len(inputs) < 2:
        return None
    right = call()
    return (right[0], np.broadcast_to(inits[1], right[1].shape), *right[2:])


def _exchanged(call: Call) -> Value:
    right = call()
    return right[::-1] if isinstance(right, tuple) else None


def _mean(values: Array) -> Array | None:
    return values / values.dtype.type(2) if values.dtype in (F32, F64) else None


FOLDS = (
    _folds("reduce", "reduce: initial value left out", _inits(_identity)),
    _folds("reduce", "reduce: begins at zero", _inits(lambda monoid, init: 0)),
    _folds("reduce", "reduce: begins at one", _inits(lambda monoid, init: 1)),
    _folds("reduce", "reduce: initial value counted twice", _twice),
    _folds("reduce", "reduce: last element left out", _cut(0, -1)),
    _folds("reduce", "reduce: first element left out", _cut(1, None)),
    _folds("reduce", "reduce: last element counted twice", _last_twice),
    _folds("reduce", "reduce: over another dimension", _other_dimension),
    _folds("reduce", "reduce: first element only", _not_at_all),
    _folds("reduce", "reduce: NaN is lost", _without_nan),
    _folds("reduce", "reduce: f32 accumulated in bf16", _accumulated(BF16, F32)),
    _folds("reduce", "reduce: f32 accumulated in f16", _accumulated(F16, F32)),
    _folds("reduce", "reduce: f64 accumulated in f32", _accumulated(F32, F64)),
    _folds("reduce", "reduce: s32 accumulated in s8", _accumulated(
        np.dtype(np.int8), np.dtype(np.int32))),
    _folds("reduce", "reduce: of magnitudes", lambda c: c(np.abs(c.operands[0]), *c.operands[1:])
           if len(c.operands) == 2 and c.operands[0].dtype.kind in "if" else None),
    _folds("reduce", "reduce: sum for maximum or the reverse", _other(
        {"add": np.maximum, "maximum": np.add})),
    _folds("reduce", "reduce: minimum for maximum or the reverse", _other(
        {"minimum": np.maximum, "maximum": np.minimum})),
    _folds("reduce", "reduce: or for and, or the reverse", _other(
        {"or": np.bitwise_and, "and": np.bitwise_or})),
    _folds("reduce", "reduce: sum for product or the reverse", _other(
        {"add": np.multiply, "multiply": np.add})),
    _folds("reduce", "reduce: the last one wins a tie", _backwards),
    _folds("reduce", "reduce: second result not updated", _indices_left),
    _folds("reduce", "reduce: results exchanged", _exchanged),
    _folds("reduce", "reduce: divided once more", result(_mean)),
)  # fmt: skip


# Windows

_Change = Callable[[WindowDimension, int], WindowDimension]


def refitted(window: WindowDimension, extent: int, count: int) -> WindowDimension:
    """Adjust the high padding of a window so that it has ``count`` positions."""
    reach = (window.size - 1) * window.window_dilation + 1
    dilated = (extent - 1) * window.base_dilation + 1 if extent else 0
    needed = (count - 1) * window.stride + reach
    return replace(window, padding_high=needed - dilated - window.padding_low)


def changed_window(window: Window, extents: tuple[int, ...], change: _Change) -> Window | None:
    """Change every dimension of a window, keeping the numbers of positions; None if nothing
    changes."""
    if any(d.padding_low < 0 or d.padding_high < 0 for d in window.dimensions):
        return None
    made = []
    for d, extent in zip(window.dimensions, extents):
        other = change(d, extent)
        made.append(d if other == d else refitted(other, extent, positions(d, extent)))
    changed = Window(tuple(made))
    return None if changed == window else changed


# What may be wrong about a window in one dimension.
WINDOW_CHANGES: dict[str, _Change] = {
    "one place later": lambda d, n: (
        replace(d, padding_low=d.padding_low - 1) if d.padding_low else d
    ),
    "one place earlier": lambda d, n: (
        replace(d, padding_low=d.padding_low + 1) if d.size > 1 else d
    ),
    "stride ignored": lambda d, n: replace(d, stride=1),
    "window dilation ignored": lambda d, n: replace(d, window_dilation=1),
    "base dilation ignored": lambda d, n: replace(d, base_dilation=1),
    "one element too short": lambda d, n: replace(d, size=d.size - 1) if d.size > 1 else d,
    "one element too long": lambda d, n: replace(d, size=d.size + 1),
    "padding at the other end": lambda d, n: replace(d, padding_low=d.padding_high),
}


def _window(change: _Change) -> Any:
    def wrong(call: Call) -> Value:
        window = changed_window(call.attributes["window"], call.operands[0].shape, change)
        return None if window is None else call(window=window)

    return wrong


def _padded(fill: Any) -> Any:
    """Make the bug of folding padding as elements of value ``fill``."""

    def wrong(call: Call) -> Value:
        window: Window = call.attributes["window"]
        widths = [(d.padding_low, d.padding_high) for d in window.dimensions]
        inputs, inits = _halves(call)
        if any(low < 0 or high < 0 for low, high in widths) or not np.any(widths):
            return None
        if any(d.base_dilation > 1 for d in window.dimensions) or inputs[0].dtype.kind == "V":
            return None
        bare = Window(tuple(replace(d, padding_low=0, padding_high=0) for d in window.dimensions))
        grown = (np.pad(x, widths, constant_values=np.asarray(fill, x.dtype)) for x in inputs)
        return call(*grown, *inits, window=bare)

    return wrong


def _select_last(call: Call) -> Value:
    """Select the last of equal elements in a window: a candidate need not be strictly better."""
    select = call.attributes["select"]
    return call(select=Callee(select.computation, lambda a, b: ~np.asarray(select(b, a))))


def _overwritten(call: Call) -> Value:
    """Keep one of the sources that several windows scatter to the same element."""
    fold = call.attributes["scatter"]
    other = Callee(fold.computation, lambda a, b: np.asarray(b))
    computation = replace(fold.computation, root=fold.computation.parameters[1].name)
    return call(scatter=Callee(computation, other.call))


WINDOWS = (
    *(bug for name, change in WINDOW_CHANGES.items() for bug in _windows.each(
        "reduce-window", name, _window(change))),
    _windows("reduce-window", "reduce-window: initial value left out", _inits(_identity)),
    _windows("reduce-window", "reduce-window: begins at zero", _inits(lambda m, i: 0)),
    _windows("reduce-window", "reduce-window: initial value counted twice", _twice),
    _windows("reduce-window", "reduce-window: padding counted as zeros", _padded(0)),
    _windows("reduce-window", "reduce-window: padding counted as ones", _padded(1)),
    *(bug for name, change in WINDOW_CHANGES.items() for bug in _windows.each(
        "select-and-scatter", name, _window(change))),
    _windows("select-and-scatter", "select-and-scatter: the last of equal elements", _select_last),
    _windows("select-and-scatter", "select-and-scatter: sources not combined", _overwritten),
    _windows("select-and-scatter", "select-and-scatter: begins at one", lambda c: c(
        *c.operands[:2], np.ones_like(c.operands[2]))),
    _windows("select-and-scatter", "select-and-scatter: by the least", (
        lambda c: c(-c.operands[0], *c.operands[1:]) if c.operands[0].dtype.kind in "if"
        else None)),
)  # fmt: skip

BUGS = (*FOLDS, *WINDOWS)
