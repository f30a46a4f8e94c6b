"""Write exact sums of floats: an f64 total with an error bound, else a superaccumulator.

See runtime/hlo_exact_sum.h for the bounds and their derivation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from backend_c.ir import index as ix
from backend_c.ir.element import Element
from backend_c.ir.loop_ir import (
    ACCUMULATOR,
    ACCUMULATOR_F64,
    Address,
    Array,
    Constant,
    Expr,
    Pointer,
    Variable,
)
from backend_c.ir.scope import Scope, apply
from hlo.types import F64, PARTS, PRED, ElementType

_Types = tuple[ElementType, ElementType]
_WORDS = (12, 77)  # of an accumulator and of a wide one in memory: HLO_LIMBS + 1


class Accumulator:
    """Write operations on a superaccumulator on the stack, or on two for a complex sum.

    ``factors`` are the types of factors, if it adds up products; of complex products a real sum
    takes the real part.
    """

    def __init__(
        self, scope: Scope, element_type: ElementType, *, factors: _Types | None = None
    ) -> None:
        self._scope, self._type = scope, element_type
        self._part = PARTS.get(element_type, element_type)
        of_complex = factors is not None and any(t.is_complex for t in factors)
        self._is_complex = element_type.is_complex or of_complex
        # The wide accumulator has 76 limbs to clear and to round, the narrow one 11.
        is_wide = self._part is F64 or not all(map(_is_short, factors or ()))
        kind = ACCUMULATOR_F64 if is_wide else ACCUMULATOR
        self._function = f"hlo_{kind}"
        self._sums = [scope.mutable(kind) for _ in range(1 + element_type.is_complex)]
        for part in self._sums:
            scope.call(f"{self._function}_clear", Address(part))
            if factors is not None:  # a dot starts at +0
                scope.call(f"{self._function}_add", Address(part), Constant(F64, 0.0))

    def add(self, value: Expr) -> None:
        """Write the addition of a value of the sum's type."""
        for part, (component,) in zip(self._sums, self._components(value), strict=True):
            self._scope.call(f"{self._function}_add", Address(part), component)

    def add_product(self, lhs: Expr, rhs: Expr, conditions: Sequence[Expr] = ()) -> None:
        """Write the addition of the product of two factors, if every condition holds."""
        if conditions:
            with self._scope.when(conditions[0]):
                self.add_product(lhs, rhs, conditions[1:])
            return
        left, right = self._components(lhs), self._components(rhs)
        self._product(self._sums[0], left[0], right[0])
        if not self._is_complex:
            return
        # (a + bi)(c + di) = (ac - bd) + (ad + bc)i, each of the four products exact.
        self._product(self._sums[0], [apply("negate", piece) for piece in left[1]], right[1])
        if self._type.is_complex:
            self._product(self._sums[1], left[0], right[1])
            self._product(self._sums[1], left[1], right[0])

    def _product(self, into: Variable, lhs: Sequence[Expr], rhs: Sequence[Expr]) -> None:
        """Write the addition of the product of two unevaluated sums: all products of their
        pieces."""
        for left in lhs:
            for right in rhs:
                self._scope.call(f"{self._function}_add_product", Address(into), left, right)

    def _components(self, value: Expr) -> list[list[Expr]]:
        """Return the real part, or both parts, each as an unevaluated sum of f64 numbers."""
        if not self._is_complex:
            return [self._widened(value)]
        if not value.type.is_complex:
            return [self._widened(value), [Constant(F64, 0.0)]]
        part = PARTS[value.type]
        return [self._widened(apply(name, value, type=part)) for name in ("real", "imag")]

    def _widened(self, value: Expr) -> list[Expr]:
        """Return a value as an unevaluated sum of f64 numbers: a 64-bit integer takes two."""
        if value.type is F64:
            return [self._scope.bind(value)]
        if value.type.is_integer and value.type.bits == 64:
            named = self._scope.bind(value)
            # High part and low 32 bits: each is a float64 exactly.
            mask = Constant(value.type, 0xFFFFFFFF)
            low = self._scope.bind(apply("and", named, mask))
            pieces = [apply("subtract", named, low), low]
            return [self._scope.bind(apply("widen", piece, type=F64)) for piece in pieces]
        return [self._scope.bind(apply("widen", value, type=F64))]

    def rounded(self) -> Expr:
        """Return the sum, rounded once; the accumulator is invalid afterwards."""
        return self._rounded("accumulated")

    def so_far(self) -> Expr:
        """Return the sum, rounded once; the accumulator remains valid."""
        return self._rounded("accumulated-so-far")

    @staticmethod
    def words(element_type: ElementType) -> int:
        """Return the number of 64-bit words of a saved accumulator."""
        parts = 1 + element_type.is_complex
        return parts * _WORDS[PARTS.get(element_type, element_type) is F64]

    def save(self, array: Array, place: Expr) -> None:
        """Write the sum to memory."""
        self._move("save", array, place)

    def load(self, array: Array, place: Expr) -> None:
        """Read a sum that was saved."""
        self._move("load", array, place)

    def _move(self, way: str, array: Array, place: Expr) -> None:
        words = _WORDS[self._part is F64]
        for number, part in enumerate(self._sums):
            at = Pointer(array, ix.add(place, number * words))
            self._scope.call(f"hlo_block_sums_{way}_{self._function}", Address(part), at)

    def merge(self, other: Accumulator) -> None:
        """Write the addition of another accumulator, which is invalid afterwards."""
        for part, added in zip(self._sums, other._sums, strict=True):
            self._scope.call(f"{self._function}_merge", Address(part), Address(added))

    def _rounded(self, operation: str) -> Expr:
        """Return the sum, rounded by an operation of the loop IR."""
        parts = [
            self._scope.bind(apply(operation, Address(part), type=self._part))
            for part in self._sums
        ]
        if not self._type.is_complex:
            return parts[0]
        return self._scope.bind(apply("complex", *parts, type=self._type))


def _is_short(element_type: ElementType) -> bool:
    """Return whether products of numbers of a type are exact in f64."""
    if element_type.is_inexact:
        return PARTS.get(element_type, element_type) is not F64
    return element_type.bits <= 16


# The loops over a result's addends, written by a callback: called with the float variables that
# each iteration adds to (the loop's reduction), it calls back with every addend.
Addend = Callable[[Expr], None]
Addends = Callable[[Sequence[Variable], Addend], None]
# The same in blocks: (block, sums, add).
BlockAddends = Callable[[Expr, Sequence[Variable], Addend], None]


def exact_sum(
    scope: Scope, element_type: ElementType, init: Expr, count: int, addends: Addends
) -> Expr:
    """Return the exact sum of ``init`` and up to ``count`` addends, rounded once to their type."""
    # An f64 total decides only roundings to types that are narrower.
    if element_type.is_complex or element_type is F64:
        return accumulated(scope, element_type, init, addends)
    start = scope.bind(apply("widen", init, type=F64))
    total, magnitude = _declare_running_sums(scope, start)
    addends((total, magnitude), _adder(scope, total, magnitude))
    sums = total, magnitude, ix.constant(count + 1)
    return _rounded_or_exact(scope, element_type, init, sums, addends)


def exact_sum_in_blocks(
    scope: Scope,
    element_type: ElementType,
    init: Expr,
    blocks: tuple[int, int],
    kind: str,
    addends: BlockAddends,
) -> Expr:
    """Return the exact sum of ``init`` and ``blocks = (number, length)`` blocks of addends.

    Each block is added up in f64 and the totals in double-double, so that the error bound is that
    of one block: a plain f64 sum of millions would leave the rounding of most results in doubt.
    ``kind`` is that of the loop over the blocks.
    """
    number, length = blocks

    def all_addends(sums: Sequence[Variable], add: Callable[[Expr], None]) -> None:
        with scope.loop(number) as block:
            addends(block, (), add)

    if element_type.is_complex or element_type is F64:
        return accumulated(scope, element_type, init, all_addends)
    totals = scope.partials(F64, number)
    magnitudes = scope.partials(F64, number)
    with scope.loop(number, kind) as block:
        # -0 is the neutral element of addition: +0 would turn a block of negative zeros into +0.
        total, magnitude = _declare_running_sums(scope, Constant(F64, -0.0))
        addends(block, (total, magnitude), _adder(scope, total, magnitude))
        scope.store(totals, block, total)
        scope.store(magnitudes, block, magnitude)
    start = scope.bind(apply("widen", init, type=F64))
    high, magnitude = _declare_running_sums(scope, start)
    low = scope.mutable(F64, Constant(F64, 0.0))
    with scope.loop(number) as block:
        scope.call("hlo_dd_add", Address(high), Address(low), scope.load(totals, block))
        scope.assign(magnitude, apply("add", magnitude, scope.load(magnitudes, block)))
    scope.assign(high, apply("add", high, low))
    # 8 more roundings: of the magnitudes, and of the pair to one double.
    sums = high, magnitude, ix.constant(length + 8)
    return _rounded_or_exact(scope, element_type, init, sums, all_addends)


def _declare_running_sums(scope: Scope, start: Expr) -> tuple[Variable, Variable]:
    """Declare a running total and a running sum of magnitudes."""
    return scope.mutable(F64, start), scope.mutable(F64, apply("abs", start))


def _adder(scope: Scope, total: Variable, magnitude: Variable) -> Callable[[Expr], None]:
    """Return a function that adds a value to the total, and its magnitude to the other sum."""

    def add(value: Expr) -> None:
        wide = scope.bind(apply("widen", value, type=F64))
        scope.assign(total, apply("add", total, wide))
        scope.assign(magnitude, apply("add", magnitude, apply("abs", wide)))

    return add


def _rounded_or_exact(
    scope: Scope,
    element_type: ElementType,
    init: Expr,
    sums: tuple[Expr, Expr, Expr],
    addends: Addends,
) -> Expr:
    """Return the total rounded once; if its bound leaves doubt, the superaccumulator's sum."""
    result, decided = decide_rounding(scope, element_type, init, sums)
    with scope.when(apply("not", decided, type=PRED)):
        scope.assign(result, accumulated(scope, element_type, init, addends))
    return result


def decide_rounding(
    scope: Scope, element_type: ElementType, init: Expr, sums: tuple[Expr, Expr, Expr]
) -> tuple[Variable, Expr]:
    """Return a total rounded once, and whether the error bound proves the rounding.

    ``sums`` are (total, sum of magnitudes, number of roundings that an addend went through).
    """
    result = scope.mutable(element_type, Constant(element_type, 0.0))
    total, magnitude, count = sums
    # With a bound of 0 (magnitude 0) the runtime takes the sign of total as decided.
    decided: Expr = apply("decided", total, magnitude, count, Address(result), type=PRED)
    if not _starts_positive(init):
        # Adding up in lanes loses the sign of a sum of negative zeros.
        nonzero = apply("compare-NE", magnitude, Constant(F64, 0.0), type=PRED)
        decided = apply("and", nonzero, decided)
    return result, decided


def decided_sum(
    scope: Scope, init: Element, sums: tuple[Expr, Expr, Expr], addends: Addends
) -> Expr:
    """Return the exact sum of ``init`` and ``addends``, from ``sums`` as
    :func:`decide_rounding`."""
    return _rounded_or_exact(scope, init.shape.element_type, init.at(), sums, addends)


def _starts_positive(init: Expr) -> bool:
    """Return whether ``init`` is a constant with a positive sign, so that a sum of zeros is +0."""
    return isinstance(init, Constant) and math.copysign(1.0, float(init.value)) > 0  # type: ignore[arg-type]


def accumulated(scope: Scope, element_type: ElementType, init: Expr, addends: Addends) -> Expr:
    """Return the sum computed in a superaccumulator, rounded once."""
    accumulator = Accumulator(scope, element_type)
    accumulator.add(init)
    addends((), accumulator.add)
    return accumulator.rounded()
