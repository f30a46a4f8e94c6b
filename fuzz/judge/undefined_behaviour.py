"""Detect programs that are undefined for their arguments: no compiler is to blame there."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from fuzz.judge.weak_orders import disorder, symmetry
from fuzz.peers.layouts import layouts_left_open
from hlo.attributes import Window
from hlo.bit_equality import differences
from hlo.errors import Error
from hlo.module import Computation, Instruction, Module
from hlo.types import C64, PRED, ArrayShape, is_bounded
from hlo.values import Array, Value
from hlo.walk import Callee, Op, column
from interp.bounded_arrays import any_bounds
from interp.evaluator import Evaluation
from interp.exact.conversion import type_of
from interp.prepared import Compute
from interp.windows import positions

_FUEL = 1 << 18


def undefined(module: Module, arguments: Sequence[Value]) -> str | None:
    """Return why a program is undefined for its arguments, and at which instruction, or None: a
    comparator that is no strict weak order, a size below 0 or above the bound, a dynamic-reshape to
    another number of elements."""
    return _first_of(_MEANINGLESS, module, arguments)


def damaging(module: Module, arguments: Sequence[Value]) -> str | None:
    """Return why a program may damage the process that runs it, or never end, as :func:`undefined`
    does, or None. A sort with NaN that is level with all numbers gives some order of them."""
    return _first_of(_DAMAGING, module, arguments)


def left_open(module: Module, arguments: Sequence[Value]) -> str | None:
    """Return why a program has several right results beyond rounding and order, or None: a fold
    whose init is no identity (it may be used several times), a pred with bits other than 0 and 1,
    the elements by which an array grows, operands of different sizes in dimensions that have to
    agree, f64 operands converted to c64 before or after a dot, elements gathered from slices that
    have none, layouts that a bitcast reads and the text does not say."""
    return layouts_left_open(module) or _first_of(_OPEN, module, arguments)


def _first_of(checks: Checks, module: Module, arguments: Sequence[Value]) -> str | None:
    watched = {name: check for name, check in checks.items() if _has(module, name)}
    tells_sizes = checks is _OPEN and any_bounds(module)
    if not watched and not tells_sizes:
        return None
    found: list[str] = []
    at = _Current()
    ops = dict(column("interp.ops"))
    for name, check in watched.items():
        op = ops[name]
        ops[name] = Op(_watched(op.function, check, found, at), op.given, op.home)
    tell = found.append if tells_sizes else None
    with suppress(Error):
        Evaluation(module, _FUEL, ops=ops, tell_open=tell, observer=at).result(arguments)
    return found[0] if found else None  # also if the program went no further


def _has(module: Module, name: str) -> bool:
    opcode = name.replace("_", "-")
    return any(i.opcode == opcode for c in module.computations for i in c.instructions)


class _Current:
    """Observe the instruction that is evaluated."""

    def __init__(self) -> None:
        self.name = ""

    def begins(self, computation: Computation, arguments: Sequence[Any]) -> None:
        """Ignore arguments."""

    def observed(
        self, computation: Computation, instruction: Instruction, compute: Compute
    ) -> Compute:
        """Note an instruction before it is computed."""

        def noted(*operands: Any) -> Any:
            self.name = instruction.name
            return compute(*operands)

        return noted


def _watched(
    function: Callable[..., Any],
    check: Callable[..., str | None],
    found: list[str],
    at: _Current,
) -> Callable[..., Any]:
    def of(*operands: Any, **attributes: Any) -> Any:
        name = at.name  # which a callee may change
        why = check(*operands, **attributes)
        if why is not None:
            found.append(f"%{name}: {why}")
        return function(*operands, **attributes)

    return of


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
    # An identity leaves all elements as they are, and itself: op(init, x) is x. (+0 is one of sums,
    # though +0 + -0 is +0: how often it is added decides the sign of a zero at most.)
    begun = to_apply(*(np.broadcast_to(x, flat[0].shape) for x in inits), *flat)
    results = begun if isinstance(begun, tuple) else (begun,)
    whole = tuple(np.broadcast_to(x, flat[0].shape) for x in results)
    changed = differences(*(tuple(map(_with_plain_zeros, x)) for x in (flat, whole)))
    return "a fold from what is no identity" if changed else None


def _with_plain_zeros(array: Array) -> Array:
    """Return an array of numbers with +0 for -0."""
    zero = array.dtype.type(0)  # which f8e8m0fnu has not
    has_signs = type_of(array).is_inexact and zero == 0
    return np.asarray(array + zero) if has_signs else array


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
    windows = tuple(map(positions, window.dimensions, operand.shape))
    return None if source.shape == windows else "operands of different sizes"


def _gathers_nothing(
    *operands: Array, slice_sizes: Sequence[int], collapsed_slice_dims: Sequence[int], **_: Any
) -> str | None:
    """Return whether a collapsed dimension of size 0 leaves elements that no slice has."""
    is_empty = any(slice_sizes[d] == 0 for d in collapsed_slice_dims)
    return "elements of slices that have none" if is_empty else None


Checks = Mapping[str, Callable[..., str | None]]

_DAMAGING: Checks = {
    "sort": symmetry,
    "set_dimension_size": _sizes,
    "dynamic_reshape": _reshapes,
}
_MEANINGLESS: Checks = {**_DAMAGING, "sort": disorder}
_OPEN: Checks = {
    "bitcast": _makes_preds,
    "bitcast_convert": _makes_preds,
    "convolution": _narrows,
    "dot": _narrows,
    "gather": _gathers_nothing,
    "reduce": _reduces,
    "reduce_window": _reduces,
    "select_and_scatter": _scatters,
}
