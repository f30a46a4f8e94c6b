"""Render conversions from any type to any other, rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes

from backend_c.ir.loop_ir import INDEX, INDICES, NARROW_INDEX
from backend_c.render.binding import ATOM, OTHER
from backend_c.render.c_types import is_narrow, register_type
from hlo.types import F32, F64, PRED, U64, ElementType

_FLOAT_INTEGERS = 2**24  # all integers up to it are floats of 32 bits


def rounded_from_f64(text: str, element_type: ElementType) -> str:
    """Render a double rounded once to a float type."""
    if element_type is F64:
        return text
    return f"(float){text}" if element_type is F32 else f"hlo_round_{element_type}_from_f64({text})"


def converted(
    texts: Sequence[str], types: Sequence[ElementType], result: ElementType
) -> tuple[str, int]:
    """Render ``convert`` from any type to any other, rounded once."""
    (text,), (source,) = texts, types
    if source in INDICES:
        return _from_index(text, result)
    if result is INDEX:
        return (f"hlo_index_u64({text})" if source is U64 else f"(int64_t){text}"), ATOM
    if result is NARROW_INDEX:
        return f"(int32_t){text}", ATOM
    if result is PRED:
        zero = "0.0f" if source.is_float else "0"
        return f"{text} != {zero}", OTHER
    if source is PRED and not result.is_complex:
        return _from_pred(text, result)
    if source.is_complex or result.is_complex:
        return f"hlo_convert_{source}_{result}({text})", ATOM
    # C leaves the conversion of NaN and of what is out of range undefined.
    if result.is_integer and source.is_float:
        return f"hlo_{result}_from_{'f64' if source is F64 else 'f32'}({text})", ATOM
    if result.is_integer:
        return f"hlo_wrap_{result}((uint64_t){text})", ATOM
    return _to_float(text, source, result)


def _from_pred(text: str, result: ElementType) -> tuple[str, int]:
    """Render ``convert`` from PRED: a choice, as gcc 12 has no vector for C's conversion of a mask
    that was computed of bytes and of 16-bit numbers."""
    if result.is_float and result.numpy.type(0) != 0:  # f8e8m0fnu
        return f"hlo_round_{result}({text} ? 1.0f : 0.0f)", ATOM
    if result.is_float:
        number = register_type(result)
        return f"({text} ? ({number})1 : ({number})0)", ATOM
    return f"hlo_wrap_{result}({text} ? 1u : 0u)", ATOM


def _from_index(text: str, result: ElementType) -> tuple[str, int]:
    """Render ``convert`` from INDEX."""
    if is_narrow(result):
        return f"hlo_round_{result}_from_f64((double){text})", ATOM
    if result.is_complex:
        part = "float" if result.bits == 64 else "double"
        return f"hlo_make_{result}(({part}){text}, 0)", ATOM
    if result is PRED:
        return f"{text} != 0", OTHER
    if result.is_integer:
        return f"hlo_wrap_{result}((uint64_t){text})", ATOM
    return f"({register_type(result)}){text}", ATOM


def _to_float(text: str, source: ElementType, result: ElementType) -> tuple[str, int]:
    """Render ``convert`` to a float type, rounded once.

    A 64-bit integer does not fit a double, nor one of 32 bits a float, so they are rounded to odd
    there, which rounding to a narrower type then takes as the integer itself. A float has the
    integers up to 2**24: of a type that ends below, larger ones overflow all the same.
    """
    if not is_narrow(result) or source is result or _has_all(result, source):
        return f"({register_type(result)}){text}", ATOM
    if source.is_integer and float(_limits(result).max) < _FLOAT_INTEGERS:
        return f"hlo_round_{result}((float){text})", ATOM
    if source.is_integer and source.bits == 64:
        odd = f"hlo_f64_from_{source}_to_odd({text})"
        return f"hlo_round_{result}_from_f64({odd})", ATOM
    if source.is_integer and source.bits == 32:
        return f"hlo_round_{result}(hlo_f32_from_{source}_to_odd({text}))", ATOM
    if source is F64:
        return f"hlo_round_{result}_from_f64((double){text})", ATOM
    return f"hlo_round_{result}((float){text})", ATOM


def _has_all(result: ElementType, source: ElementType) -> bool:
    """Return whether a float type has all numbers of an integer type."""
    if not source.is_integer:
        return False
    magnitude_bits = source.bits - (source.kind == "signed")
    return bool(magnitude_bits <= _limits(result).nmant + 1)


def _limits(element_type: ElementType) -> Any:
    """Return the limits of a float type: its largest number, the bits of its mantissa."""
    return ml_dtypes.finfo(element_type.numpy)  # type: ignore[no-untyped-call]


def as_double(
    texts: Sequence[str], types: Sequence[ElementType], result: ElementType
) -> tuple[str, int]:
    return f"(double){texts[0]}", ATOM


def from_double(
    texts: Sequence[str], types: Sequence[ElementType], result: ElementType
) -> tuple[str, int]:
    """Render an f64 value rounded once to the result type."""
    return rounded_from_f64(texts[0], result), ATOM


def accumulated(
    texts: Sequence[str], types: Sequence[ElementType], result: ElementType
) -> tuple[str, int]:
    """Render an accumulator's sum, rounded once to the result type (by way of odd in f64)."""
    ending = "to_f64" if result is F64 else "to_odd"
    return rounded_from_f64(f"hlo_{types[0]}_{ending}({texts[0]})", result), ATOM


def accumulated_so_far(
    texts: Sequence[str], types: Sequence[ElementType], result: ElementType
) -> tuple[str, int]:
    """Render an accumulator's sum and leave it valid, for more additions."""
    ending = "to_f64" if result is F64 else "to_odd"
    return rounded_from_f64(f"hlo_{types[0]}_so_far_{ending}({texts[0]})", result), ATOM
