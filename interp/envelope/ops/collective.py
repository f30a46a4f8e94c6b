"""Enclose what a rank receives of collective operations, as the only rank there is.

It receives its own operand, by the interpreter's function of the op. What XLA makes of that is less
exact in two cases: it adds the operand up, so that subnormals may be flushed, and it has zeros of
its own for what no rank sends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hlo.module import Instruction
from hlo.replica_groups import SourceTargetPairs
from hlo.types import Shape
from hlo.walk import Op, call
from interp.envelope import budget
from interp.envelope.bounded_enclosures import PARTS
from interp.envelope.complex_numbers import parts
from interp.envelope.enclosed_values import certain, lows, unknown
from interp.envelope.enclosure import WITHOUT_ZERO, Enclosure, Value
from interp.envelope.interval_rules import flushed, of_either_sign
from interp.ops.elementwise import complex_
from interp.values import mapped

_FOLDED = frozenset(("all-reduce", "all-reduce-start", "reduce-scatter"))
_SLICED = frozenset(("collective-permute", "collective-permute-start"))


def received(
    op: Op,
    instruction: Instruction,
    operands: list[Value],
    attributes: Mapping[str, object],
    shapes: Sequence[Shape],
) -> Value:
    """Apply the interpreter's op to low ends, high ends and NaN masks; ``shapes`` are the
    declared shapes of the operands. Uncertain starts of slices admit anything."""
    # Two arrays, then where slices of them start, which are the same for all parts.
    has_starts = instruction.opcode in _SLICED and attributes.get("slice_sizes")
    count = 2 if has_starts else len(operands)
    data, starts = operands[:count], operands[count:]
    low, high, nan = (
        call(
            op,
            instruction,
            [*(mapped(part, x) for x in data), *map(lows, starts)],
            attributes,
            shapes,
        )
        for part in PARTS
    )
    result = _assembled(low, low if all(map(_is_point, operands)) else high, nan)
    if instruction.opcode in _FOLDED:
        result = mapped(_folded, result)
    elif _has_no_sender(attributes):
        result = mapped(_zeros, result)
    return result if all(map(certain, starts)) else unknown(result)


def _has_no_sender(attributes: Mapping[str, object]) -> bool:
    no_pairs = attributes.get("source_target_pairs") == SourceTargetPairs()
    return no_pairs and not attributes.get("slice_sizes")


def _folded(value: Enclosure | None) -> Enclosure | None:
    """Admit zero for a subnormal, as of any arithmetic, and zeros of either sign: a fold may begin
    with its identity, and 0 + -0 and (1 + 0i) (-0 - 4i) have the zero +0. A type without zero keeps
    its numbers."""
    if value is None or value.element_type.name == WITHOUT_ZERO:
        return value
    if budget.current() is budget.EXACT or not value.element_type.is_inexact:
        return value
    if not value.element_type.is_complex:
        taken = flushed(value)
        return Enclosure(*of_either_sign(taken.low, taken.high), taken.nan)
    # Each part by itself: `flushed` leaves complex numbers alone.
    both = map(flushed, parts(value))
    real, imag = (of_either_sign(part.low, part.high) for part in both)
    low, high = map(complex_, real, imag)
    return Enclosure(low, high, value.nan)


def _zeros(value: Enclosure | None) -> Enclosure | None:
    """Admit, in the type that has no zero, the number whose bits are zero beside NaN: what nobody
    sends is 0 converted to the type, or those bits."""
    if value is None or value.element_type.name != WITHOUT_ZERO:
        return value
    nan = np.ones_like(value.nan)
    if budget.current() is budget.EXACT:
        return replace(value, nan=nan)
    bits = np.zeros(value.shape, value.low.dtype)
    return Enclosure(bits, bits, nan)


def _is_point(value: Value) -> bool:
    return all(map(_is_point, value)) if isinstance(value, tuple) else value.is_point


def _assembled(low: Value, high: Value, nan: Value) -> Value:
    if isinstance(low, tuple):
        return tuple(map(_assembled, low, high, nan))
    return Enclosure(low, low if high is low else high, nan)
