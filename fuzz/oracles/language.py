"""Check the language itself: round trips of text, and shapes against values."""

from __future__ import annotations

import math

import numpy as np

import hlo
from fuzz.oracles.oracle import Difference, Outcome, compared, right
from fuzz.reducer.cutting import can_be_shown
from fuzz.reducer.search import Case
from hlo.errors import Error
from hlo.module import Module
from hlo.passes.inline import inline
from hlo.types import ArrayShape, Shape, TupleShape
from interp.envelope.recorded_values import exposed
from interp.values import Value

_DIALECTS = ("short", "long")


def printed(case: Case) -> Outcome:
    """Check that printing and parsing gives the same program, and that the canonical text is a
    program with the same results."""
    module = case.module
    try:
        for dialect in _DIALECTS:
            text = hlo.format(module, dialect)
            again = hlo.parse(text)
            if hlo.format(again, dialect) != text or (again != module and not _has_nan(module)):
                return Difference(f"{dialect}: another program", _first_line(text, again, dialect))
        canonical = hlo.parse(hlo.format(module, "canonical"))
        hlo.verify(canonical)
    except Error as error:
        return Difference(type(error).__name__, str(error))
    return compared(right(case), right(Case(canonical, case.arrays)))


def _has_nan(module: Module) -> bool:
    """Return whether an attribute is NaN, which equals nothing."""
    instructions = (i for c in module.computations for i in c.instructions)
    values = (value for i in instructions for value in i.attributes.values())
    return any(isinstance(value, float) and math.isnan(value) for value in values)


def _first_line(text: str, again: Module, dialect: str) -> str:
    pairs = zip(text.splitlines(), hlo.format(again, dialect).splitlines(), strict=False)
    return next((f"{one!r} became {other!r}" for one, other in pairs if one != other), "")


def shapes(case: Case) -> Outcome:
    """Check that every value of the entry has the element type and shape that its instruction
    declares."""
    whole = inline(case.module)
    shown = filter(can_be_shown, whole.entry.instructions)
    names = tuple(i.name for i in shown if i.name != whole.entry.root)
    value = right(Case(exposed(whole, names), case.arrays))
    declared = {i.name: i.shape for i in whole.entry.instructions}
    for name, part in zip((whole.entry.root, *names), value, strict=True):
        wrong = _unlike(part, declared[name])
        if wrong:
            opcode = next(i.opcode for i in whole.entry.instructions if i.name == name)
            return Difference(opcode, f"%{name} is {declared[name]}, its value {wrong}")
    return None


def _unlike(value: Value, shape: Shape) -> str:
    """Describe how a value contradicts its declared shape, "" if it does not. Actual sizes may be
    below the bounds."""
    if isinstance(shape, TupleShape):
        if not isinstance(value, tuple) or len(value) != len(shape.elements):
            return "no such tuple"
        return next(filter(None, map(_unlike, value, shape.elements)), "")
    assert isinstance(shape, ArrayShape)
    if not shape.element_type.is_array:
        return "" if value is None else "no token"
    array = np.asarray(value)
    # Ranks may differ, which ``fits`` tests before it looks at the pairs.
    sizes = zip(array.shape, shape.dims, shape.dynamic or (False,) * shape.rank, strict=False)
    fits = array.ndim == shape.rank and all(
        size == most or (dynamic and size < most) for size, most, dynamic in sizes
    )
    if fits and array.dtype == shape.element_type.numpy:
        return ""
    return f"{array.dtype}{list(array.shape)}"
