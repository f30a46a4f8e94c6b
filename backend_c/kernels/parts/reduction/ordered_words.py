"""Reduce rows and columns of 16-bit floats in memory to their extremes by their words.

Registers hold such floats as f32, of which a vector has half as many, and one of f16 is converted
first. The order of floats is that of integers made of their words: a negative number's bits but the
sign are inverted, so that -0 is less than 0. Then the NaN at the far end are moved to the other end
by an addition modulo 2**16, so that every NaN is beyond the infinities where the extreme is sought.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from backend_c.ir.element import array_reader
from backend_c.ir.loop_ir import Constant, Expr
from backend_c.ir.scope import apply
from hlo.types import BF16, F16, S16, U16, ArrayShape, ElementType

if TYPE_CHECKING:
    from backend_c.kernels.parts.reduction.reordered_reduction import ReorderedReduction

# How many words of a type are NaN of one sign.
_NANS = {F16: (1 << 10) - 1, BF16: (1 << 7) - 1}
# Elements of a result: of fewer, what is computed of each result takes longer than conversions.
_FEWEST = 2
_MAGNITUDE = 0x7FFF  # the bits of a word but its sign


def in_words(reduction: ReorderedReduction) -> ReorderedReduction:
    """Return the reduction by words, if it is one to an extreme of 16-bit floats in memory, in
    lanes; else the reduction as it is."""
    operand, monoid = reduction.operand, reduction.monoid
    is_extreme = monoid.name in ("maximum", "minimum") and monoid.element in _NANS
    is_long = math.prod(reduction.extents(reduction.reduced)) >= _FEWEST
    has_lanes = reduction.scope.settings.has_lanes
    if operand.array is None or not is_extreme or not is_long or not has_lanes:
        return reduction
    memory = operand.array.memory or operand.array.element_type
    words = operand.array._replace(element_type=U16, memory=memory)
    reader = array_reader(words, ArrayShape(U16, operand.shape.dims), operand.sizes)
    return replace(reduction, monoid=replace(monoid, state=S16), operand=reader)


def state_of(value: Expr, name: str, element: ElementType) -> Expr:
    """Return the state of a float's word, or of a float."""
    if isinstance(value, Constant) and value.type is not U16:
        word = int(np.array(value.value, element.numpy).view(np.int16))
        key = word if word >= 0 else word ^ _MAGNITUDE
        moved = (key - _moved(name, element) + (1 << 15)) % (1 << 16) - (1 << 15)
        return Constant(S16, moved)
    bits = apply("bitcast", value, type=S16)
    return apply("subtract", _inverted(bits), Constant(S16, _moved(name, element)))


def float_of(state: Expr, name: str, element: ElementType) -> Expr:
    """Return the float of a state."""
    key = apply("add", state, Constant(S16, _moved(name, element)))
    return apply("bitcast", _inverted(key), type=element)


def _moved(name: str, element: ElementType) -> int:
    """Return by how much keys are more than states."""
    return _NANS[element] if name == "maximum" else -_NANS[element]


def _inverted(word: Expr) -> Expr:
    """Invert a negative number's bits but the sign; that is its own inverse."""
    sign = apply("shift-right-arithmetic", word, Constant(S16, 15))
    return apply("xor", word, apply("and", sign, Constant(S16, _MAGNITUDE)))
