"""Describe monoids whose values may be combined in any order, in vector lanes and by threads.

A monoid's running value, its *state*, is a number that C and OpenMP know how to combine:

    of floats      maximum and minimum: the integer of the total order, as -0 < +0; NaN is the last
                   integer beyond the infinities, so that it remains. Of 16 bits: a number of as
                   many bits, of the word (ordered_words)
                   add and multiply, in ``fast`` numerics only: the number itself
    of integers    add and multiply modulo 2**bits, maximum, minimum, and, or, xor
    of pred        and, or (HLO's maximum and add are or, minimum and multiply are and), xor
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from backend_c.ir.loop_ir import BOOLEAN, Constant, Expr
from backend_c.ir.scope import apply
from backend_c.kernels.parts.reduction.ordered_words import float_of, state_of
from hlo.types import F32, F64, PRED, S16, S32, S64, U8, U32, ElementType

_OPERATORS = {
    "add": "+",
    "multiply": "*",
    "maximum": "max",
    "minimum": "min",
    "and": "&",
    "or": "|",
    "xor": "^",
}


@dataclass(frozen=True, slots=True)
class Monoid:
    """Combine elements of a type by the operation ``name``, in states of type ``state``."""

    name: str
    element: ElementType
    state: ElementType

    @property
    def operator(self) -> str:
        """Return the operator as OpenMP names it in a ``reduction`` clause."""
        return _OPERATORS[self.name]

    @property
    def identity(self) -> Constant:
        """Return the identity, the state e with e ∘ x = x for every state x."""
        if self._is_ordered:
            low, high, _ = _range(self.state)
            return Constant(self.state, low if self.name == "maximum" else high)
        if self.state.is_float:
            # -0 + x is x for every x, which +0 + -0 is not.
            return Constant(self.state, 1.0 if self.name == "multiply" else -0.0)
        if self.name == "and":
            return Constant(self.state, 1 if self.element is PRED else _range(self.state)[2])
        return Constant(self.state, int(self.name == "multiply"))

    @property
    def is_element(self) -> bool:
        """Return whether states are elements."""
        return self.element is self.state and not (self.element.is_float and self._is_ordered)

    @property
    def is_idempotent(self) -> bool:
        """Return whether x ∘ x = x, so that it does not matter how often an element counts."""
        return self._is_ordered or self.name in ("and", "or")

    @property
    def _is_ordered(self) -> bool:
        return self.name in ("maximum", "minimum")

    @property
    def _is_of_words(self) -> bool:
        return self.element.is_float and self.state is S16

    def lifted(self, element: Expr) -> Expr:
        """Convert an element, or its word where states are of words, to a state."""
        if self._is_of_words:
            return state_of(element, self.name, self.element)
        if self.element.is_float and self._is_ordered:
            if isinstance(element, Constant):
                return self._lifted_constant(float(element.value))  # type: ignore[arg-type]
            low, high, _ = _range(self.state)
            key = apply("total-order", element, type=self.state)
            beyond = Constant(self.state, high if self.name == "maximum" else low)
            is_nan = apply("compare-NE", element, element, type=PRED)
            return apply("select", is_nan, beyond, key, type=self.state)
        return element if self.element is self.state else apply("convert", element, type=self.state)

    def _lifted_constant(self, number: float) -> Constant:
        """Convert a float constant to a state."""
        low, high, bits = *_range(self.state)[:2], self.state.bits
        if math.isnan(number):
            return Constant(self.state, high if self.name == "maximum" else low)
        word = int(np.array(number, f"f{bits // 8}").view(f"i{bits // 8}"))
        return Constant(self.state, word if word >= 0 else word ^ high)

    def combined(self, one: Expr, other: Expr) -> Expr:
        """Apply the operation to two states."""
        return apply(self.name, one, other, type=self.state)

    def value(self, state: Expr) -> Expr:
        """Convert a state back to an element."""
        if self._is_of_words:
            return float_of(state, self.name, self.element)
        if self.element.is_float and self._is_ordered:
            return apply("from-total-order", state, type=self.element)
        return state if self.element is self.state else apply("convert", state, type=self.element)


def monoid_of(
    name: str | None, element_type: ElementType, *, is_fast: bool, is_dense: bool = False
) -> Monoid | None:
    """Return the monoid of an operation on a type; None where the order of combination matters.

    ``is_fast``: sums and products of floats may be reassociated. ``is_dense``: states are as narrow
    as elements, so that a vector has more of them.
    """
    if name not in _OPERATORS:
        return None
    if element_type is PRED:
        return Monoid(BOOLEAN.get(name, name), PRED, U8 if is_dense else S32)
    if element_type.is_integer:
        if element_type.bits >= 32 or (is_dense and element_type.bits >= 8):
            return Monoid(name, element_type, element_type)
        return Monoid(name, element_type, S32 if element_type.kind == "signed" else U32)
    if not element_type.is_float:
        return None
    if name in ("maximum", "minimum"):
        return Monoid(name, element_type, S64 if element_type is F64 else S32)
    if name in ("add", "multiply") and is_fast:
        return Monoid(name, element_type, F64 if element_type is F64 else F32)
    return None


def _range(element_type: ElementType) -> tuple[int, int, int]:
    """Return (least, greatest, all bits set) of an integer type."""
    bits = element_type.bits
    if element_type.kind == "signed":
        return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, -1
    return 0, 2**bits - 1, 2**bits - 1
