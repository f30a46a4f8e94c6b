"""Detect results that depend on the payload or sign of a computed NaN, which is undefined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlo.bit_equality import differences
from hlo.errors import Error
from hlo.module import Instruction, Module
from hlo.opcodes import MOVES, OPAQUE, READS_BITS, having
from hlo.walk import Op, column, function_name
from interp.evaluator import Evaluation
from interp.values import Value, mapped

_LOOKS = having(READS_BITS)
# A NaN in the result of these was not computed there: its bits are those it had before. Sorts and
# collectives are left out: a compiler may widen what it compares or sends, and narrow it again.
_KEEP = frozenset(
    map(
        function_name,
        having(MOVES) | having(OPAQUE) | {"bitcast-convert", "conditional", "constant", "while"},
    )
)
_FUEL = 1 << 18


def depends_on_them(module: Module, arrays: Sequence[Any]) -> bool:
    """Whether the result is another one where NaNs that are computed have other bits: any NaN is as
    good as another, and a bitcast makes a number of it, a total order looks at its sign."""
    if not any(_looks(i) for c in module.computations for i in c.instructions):
        return False
    try:
        one, other = (_evaluated(module, arrays, ones) for ones in (False, True))
    except Error:
        return False
    return bool(differences(one, other))


def _looks(instruction: Instruction) -> bool:
    return instruction.opcode in _LOOKS or instruction.attributes.get("type") == "TOTALORDER"


def _evaluated(module: Module, arrays: Sequence[Any], ones: bool) -> Value:
    ops = {
        name: op if name in _KEEP else Op(_marked(op.function, ones), op.given, op.home)
        for name, op in column("interp.ops").items()
    }
    return Evaluation(module, _FUEL, ops=ops).result(arrays)


def _marked(function: Callable[..., Any], ones: bool) -> Callable[..., Any]:
    def of(*operands: Any, **attributes: Any) -> Any:
        return mapped(lambda value: _with_nan(value, ones), function(*operands, **attributes))

    return of


def _with_nan(value: Any, ones: bool) -> Any:
    """Replace every NaN by one of all ones, where that is one, or by the default NaN."""
    array = np.asarray(value)
    if array.dtype.kind == "c":
        found = np.empty(array.shape, array.dtype)
        found.real, found.imag = _with_nan(array.real, ones), _with_nan(array.imag, ones)
        return found
    if not array.dtype.name.startswith(("bfloat", "float")):
        return value
    nan = np.isnan(array)
    if not nan.any():
        return value
    all_ones = np.asarray(-1, f"i{array.dtype.itemsize}").view(array.dtype)
    marked = all_ones if ones and np.isnan(all_ones) else np.asarray(np.nan, array.dtype)
    return np.where(nan, marked, array)
