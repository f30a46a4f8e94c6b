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
from interp.envelope.enclosure import finfo
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
# Of either sign, and with any payload. As part of a wider number the default NaN is a finite one,
# which its sign decides about, and all ones is a NaN again. Of several NaNs a total order is by
# their bits, so they are given an order, and the reverse of it.
_NANS = ("default", "negative", "ones", "ascending", "descending")


def depends_on_them(module: Module, arrays: Sequence[Any]) -> bool:
    """Return whether the result changes with the bits of computed NaNs. Any NaN is as good as
    another, but a bitcast turns it into a number, and a total order depends on its sign."""
    if not any(_looks(i) for c in module.computations for i in c.instructions):
        return False
    try:
        one, *others = (_evaluated(module, arrays, nan) for nan in _NANS)
    except Error:
        return False
    return any(map(bool, (differences(one, other) for other in others)))


def _looks(instruction: Instruction) -> bool:
    return instruction.opcode in _LOOKS or instruction.attributes.get("type") == "TOTALORDER"


def _evaluated(module: Module, arrays: Sequence[Any], nan: str) -> Value:
    ops = {
        name: op if name in _KEEP else Op(_marked(op.function, nan), op.given, op.home)
        for name, op in column("interp.ops").items()
    }
    return Evaluation(module, _FUEL, ops=ops).result(arrays)


def _marked(function: Callable[..., Any], nan: str) -> Callable[..., Any]:
    def of(*operands: Any, **attributes: Any) -> Any:
        return mapped(lambda value: _with_nan(value, nan), function(*operands, **attributes))

    return of


def _with_nan(value: Any, chosen: str) -> Any:
    """Replace every NaN by the chosen one; by the default NaN where the type does not have it."""
    array = np.asarray(value)
    if array.dtype.kind == "c":
        found = np.empty(array.shape, array.dtype)
        found.real, found.imag = _with_nan(array.real, chosen), _with_nan(array.imag, chosen)
        return found
    if not array.dtype.name.startswith(("bfloat", "float")):
        return value
    nan = np.isnan(array)
    if not nan.any():
        return value
    default = np.asarray(np.nan, array.dtype)
    marked = _marks(array, default, chosen)
    return np.where(nan, np.where(np.isnan(marked), marked, default), array)


def _marks(array: np.ndarray, default: np.ndarray, chosen: str) -> np.ndarray:
    """Return NaNs for the elements of an array; numbers where the type has not so many."""
    bits = f"u{array.dtype.itemsize}"
    if chosen == "negative":
        return np.asarray(np.negative(default))
    if chosen == "ones":
        return np.asarray(-1, bits.replace("u", "i")).view(array.dtype)
    if chosen == "default":
        return default
    count = 1 << max(0, finfo(array.dtype).nmant - 1)  # NaNs that are quiet, of one sign
    places = np.arange(array.size).reshape(array.shape) % count
    payloads = places if chosen == "ascending" else count - 1 - places
    return np.asarray(default.view(bits) | payloads.astype(bits)).view(array.dtype)
