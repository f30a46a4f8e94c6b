"""Detect programs that are undefined for their arguments: no compiler is to blame there."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from hlo.attributes import Window
from hlo.bit_equality import differences
from hlo.errors import Error
from hlo.module import Module
from hlo.types import C64, PRED, ArrayShape, is_bounded
from hlo.values import Array
from hlo.walk import Callee, Op, column
from interp.bounded_arrays import any_bounds
from interp.evaluator import Evaluation
from interp.windows import places

_FUEL = 1 << 18
_MOST = 64  # elements of a row, and rows, of which all pairs are compared


def undefined(module: Module, arrays: Sequence[Any]) -> str | None:
    """Return why a program is undefined for its arguments, or None: a comparator that is no strict
    weak order, a size below 0 or above the bound, a dynamic-reshape to another number of
    elements."""
    return _first_of(_MEANINGLESS, module, arrays)


def left_open(module: Module, arrays: Sequence[Any]) -> str | None:
    """Return why a program has several right results beyond rounding and order, or None: a fold
    whose init is no identity (it may be used several times), a pred with bits other than 0 and 1,
    the elements by which an array grows, operands of different sizes in dimensions that have to
    agree, f64 operands converted to c64 before or after a dot."""
    return _first_of(_OPEN, module, arrays)


def _first_of(checks: Checks, module: Module, arrays: Sequence[Any]) -> str | None:
    watched = {name: check for name, check in checks.items() if _has(module, name)}
    tells_sizes = checks is _OPEN and any_bounds(module)
    if not watched and not tells_sizes:
        return None
    found: list[str] = []
    ops = dict(column("interp.ops"))
    for name, check in watched.items():
        op = ops[name]
        ops[name] = Op(_watched(op.function, check, found), op.given, op.home)
    tell = found.append if tells_sizes else None
    with suppress(Error):
        Evaluation(module, _FUEL, ops=ops, tell_open=tell).result(arrays)
    return found[0] if found else None  # also if the program went no further


def _has(module: Module, name: str) -> bool:
    opcode = name.replace("_", "-")
    return any(i.opcode == opcode for c in module.computations for i in c.instructions)


def _watched(
    function: Callable[..., Any], check: Callable[..., str | None], found: list[str]
) -> Callable[..., Any]:
    def of(*operands: Any, **attributes: Any) -> Any:
        why = check(*operands, **attributes)
        if why is not None:
            found.append(why)
        return function(*operands, **attributes)

    return of


def _sorts(
    *operands: Array, dimensions: tuple[int, ...], to_apply: Callee[Any], **_: Any
) -> str | None:
    (dimension,) = dimensions
    rows = [np.moveaxis(x, dimension, -1) for x in operands]
    if rows[0].size == 0 or rows[0].shape[-1] < 2:
        return None
    rows = [x.reshape(-1, x.shape[-1])[:_MOST, :_MOST] for x in rows]
    count, length = rows[0].shape
    sides = [np.broadcast_to(x[:, :, None], (count, length, length)) for x in rows]
    pairs = [side for lhs in sides for side in (lhs, np.swapaxes(lhs, 1, 2))]
    flat = to_apply(*(np.ascontiguousarray(x).reshape(-1) for x in pairs))
    before = np.broadcast_to(flat, (count * length * length,)).reshape(sides[0].shape)
    return None if _is_strict_weak_order(before) else "a sort by what is no strict weak order"


def _is_strict_weak_order(before: Array) -> bool:
    after = np.swapaxes(before, 1, 2)
    if np.any(before & after):  # no element before itself, and no two before each other
        return False
    return all(_is_transitive(x) for x in (before, ~before & ~after))


def _is_transitive(related: Array) -> bool:
    numbers = related.astype(np.float32)
    return not np.any((numbers @ numbers > 0) & ~related)


def _sizes(
    operand: Array, size: Array, *, dimensions: tuple[int, ...], shape: ArrayShape, **_: Any
) -> str | None:
    bound = shape.dims[dimensions[0]]
    return None if 0 <= int(size) <= bound else f"a size of {int(size)} for a bound of {bound}"


def _reshapes(operand: Array, *sizes: Array, shape: ArrayShape, **_: Any) -> str | None:
    dims = [int(size) for size in sizes]
    fits = all(
        0 <= size <= bound and (is_bounded(shape, d) or size == bound)
        for d, (size, bound) in enumerate(zip(dims, shape.dims, strict=True))
    )
    is_whole = fits and math.prod(dims) == operand.size
    return None if is_whole else "a dynamic-reshape to other sizes"


def _reduces(*operands: Array, to_apply: Callee[Any], **_: Any) -> str | None:
    arity = len(operands) // 2
    inputs, inits = operands[:arity], operands[arity:]
    # Of no elements, too, the init may be combined with itself.
    pairs = zip(inits, inputs, strict=True)
    flat = [np.concatenate((init.reshape(1), x.reshape(-1))) for init, x in pairs]
    begun = to_apply(*(np.broadcast_to(x, flat[0].shape) for x in inits), *flat)
    results = begun if isinstance(begun, tuple) else (begun,)
    whole = tuple(np.broadcast_to(x, flat[0].shape) for x in results)
    return "a fold from what is no identity" if differences(tuple(flat), whole) else None


def _makes_preds(operand: Array, *, shape: ArrayShape, **_: Any) -> str | None:
    if shape.element_type is not PRED or operand.dtype == np.bool_:
        return None
    others = np.ascontiguousarray(operand).view(np.uint8) > 1
    return "a pred of other bits than those of 0 and 1" if others.any() else None


def _narrows(*operands: Array, shape: ArrayShape, **_: Any) -> str | None:
    """Return whether operands are wider than the result: HLO does not say whether they are
    converted before they are multiplied."""
    wide = any(operand.dtype.char in "dD" for operand in operands)
    return (
        "an operand of more range than the result" if wide and shape.element_type is C64 else None
    )


def _scatters(
    operand: Array,
    source: Array,
    init: Array,
    *,
    window: Window = Window(),  # noqa: B008  (frozen)
    **_: Any,
) -> str | None:
    """Return whether a bounded source has another size than there are windows of the operand."""
    windows = tuple(map(places, window.dimensions, operand.shape))
    return None if source.shape == windows else "operands of different sizes"


Checks = Mapping[str, Callable[..., str | None]]

_MEANINGLESS: Checks = {
    "sort": _sorts,
    "set_dimension_size": _sizes,
    "dynamic_reshape": _reshapes,
}
_OPEN: Checks = {
    "bitcast": _makes_preds,
    "bitcast_convert": _makes_preds,
    "convolution": _narrows,
    "dot": _narrows,
    "reduce": _reduces,
    "reduce_window": _reduces,
    "select_and_scatter": _scatters,
}
