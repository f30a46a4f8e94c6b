"""Write argmax and argmin: reductions of (values, iota) that keep the best value and where it is.

    best[kept] = the extremum of values[kept, j] over j, any NaN if there is one
    position[kept] = the least j where values[kept, j] is the best

In lanes: the extremum first, then the least position that has it, while a row is in the cache. The
computation is known by its results on values in every order, however it is written
(:mod:`backend_c.kernels.parts.sorting.orderings`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer, array_reader
from backend_c.ir.loop_ir import INDEX, Apply, Constant, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.reduction.combiner import Combiner, apply_combiner
from backend_c.kernels.parts.reduction.monoids import Monoid, monoid_of
from backend_c.kernels.parts.reduction.reordered_reduction import ReorderedReduction
from backend_c.kernels.parts.sorting.orderings import evaluated, keys, representatives
from hlo.module import Computation
from hlo.types import BF16, F16, F32, F64, PRED, S32, ArrayShape, ElementType
from hlo.values import Array

_FLOATS = (F16, BF16, F32, F64)
_INTEGERS = {F16: 1 << 11, BF16: 1 << 8, F32: 1 << 24, F64: 1 << 53}  # up to which all are numbers
_State = Callable[[Sequence[Expr]], Expr]  # the state of the extremum by an index of the results


@dataclass(frozen=True, slots=True)
class Choice:
    """Describe which of two (value, index) pairs an argmax or argmin keeps: the first of the best.

    ``is_last_value``: of zeros of both signs, which are equal, the value is the last one.
    """

    operation: str  # maximum or minimum
    is_last_value: bool

    def is_better(self, value: Expr, other: Expr) -> Expr:
        """Compare two values; NaN is better than any number, and than no NaN."""
        operation = "compare-GT" if self.operation == "maximum" else "compare-LT"
        better = apply(operation, value, other, type=PRED)
        if not value.type.is_float:
            return better
        none, some = (
            apply(f"compare-{direction}", one, one, type=PRED)
            for direction, one in (("NE", value), ("EQ", other))
        )
        return apply("or", better, apply("and", none, some, type=PRED), type=PRED)


def choice_of(computation: Computation) -> Choice | None:
    """Recognise a computation on two (value, index) pairs as argmax or argmin; None if it is
    not."""
    shapes = [parameter.shape for parameter in computation.parameters]
    if len(shapes) != 4 or not all(isinstance(s, ArrayShape) and not s.rank for s in shapes):
        return None
    value_type, index_type = (s.element_type for s in shapes[:2] if isinstance(s, ArrayShape))
    is_known = value_type in _FLOATS or value_type.is_integer
    values, indices = representatives(value_type), representatives(index_type)
    if not is_known or not index_type.is_integer or values is None or indices is None:
        return None
    grids = np.meshgrid(values, indices, values, indices, indexing="ij")
    cases = [grid.ravel() for grid in grids]
    results = evaluated(computation, dict(enumerate(cases)))
    if results is None or len(results) != 2:
        return None
    for operation in ("maximum", "minimum"):
        for is_last in (False, True):
            if _keeps(cases, results, operation, is_last=is_last):
                return Choice(operation, is_last)
    return None


def _keeps(cases: list[Array], results: list[Array], operation: str, *, is_last: bool) -> bool:
    """Return whether a computation's results on ``cases`` are those of an argmax or argmin.

    Ties go to the first index or to the least. All NaN tie, by a rule of their own: JAX keeps the
    first of them, and the least index of others.
    """
    v0, i0, v2, i2 = cases
    one, other = _ranks(v0, operation), _ranks(v2, operation)
    tie = one == other
    value = np.where((one > other) | (tie & (not is_last)), v0, v2)
    if not _same(value, results[0]):
        return False
    is_nan = tie & (v0 != v0)
    rules = i0, np.minimum(i0, i2)
    index = np.where(one > other, i0, i2)
    return any(
        np.array_equal(np.where(is_nan, of_nan, np.where(tie, of_others, index)), results[1])
        for of_nan, of_others in itertools.product(rules, rules)
    )


def _ranks(values: Array, operation: str) -> Array:
    """Map values to integers, the greatest for the best value; NaN is better than any."""
    rank = keys(values, merged=True).astype(np.int64)
    if operation == "minimum":
        rank = -rank
    if values.dtype.kind == "f":
        # After the negation, for NaN is the best value of a minimum, too.
        rank = np.where(np.isnan(values), np.iinfo(np.int64).max, rank)
    return rank


def _same(one: Array, other: Array) -> bool:
    """Return whether arrays have equal bits, any NaN equal to any NaN."""
    if one.dtype.kind != "f":
        return np.array_equal(one, other)
    word = f"i{one.itemsize}"
    both = np.isnan(one) & np.isnan(other)
    return bool(np.all(both | (one.view(word) == other.astype(one.dtype).view(word))))


def is_iota(scope: Scope, operand: Element, dimension: int) -> bool:
    """Return whether each element of an operand is its index along a dimension."""
    if operand.array is not None:
        return False
    extent = operand.shape.dims[dimension]
    with scope.draft(operand.shape.dims) as index:
        value = scope.definition(operand.at(*index))
        while isinstance(value, Apply) and value.operation == "convert":
            if not _counts_to(value.type, extent - 1):  # s8[300] wraps around
                return False
            value = scope.definition(value.operands[0])
        return value == index[dimension]


def in_memory(scope: Scope, values: Element) -> Element:
    """Return an operand that is cheap to read twice: values that are computed, from scratch."""
    if values.array is not None:
        return values
    array = scope.scratch(values.shape.element_type, values.shape.elements, frozen=True)
    with nest.split(scope, values.shape.dims) as index:
        scope.store(array, ix.linearize(index, values.shape.dims), values.at(*index))
    return array_reader(array, values.shape)


def _counts_to(element_type: ElementType, most: int) -> bool:
    """Return whether a type has all integers from 0 to ``most``."""
    if element_type.is_integer:
        return most < 1 << element_type.bits - (element_type.kind == "signed")
    return most <= _INTEGERS.get(element_type, -1)


@dataclass(frozen=True)
class ArgExtremum:
    """Describe the reduction of (values, iota) along ``dimension`` from two inits."""

    scope: Scope
    choice: Choice
    inputs: Sequence[Element]
    inits: Sequence[Element]
    to_apply: Combiner
    dimension: int

    @classmethod
    def of(
        cls,
        scope: Scope,
        inputs: Sequence[Element],
        inits: Sequence[Element],
        dimensions: Sequence[int],
        to_apply: Combiner,
    ) -> ArgExtremum | None:
        """Recognise a reduction as an argmax or argmin; None if it is neither."""
        if len(inputs) != 2 or len(dimensions) != 1 or any(one.sizes for one in inputs):
            return None
        (dimension,) = dimensions
        # Positions are S32, and so is the length, which stands for none.
        if not 1 < inputs[0].shape.dims[dimension] < 2**31:
            return None
        choice = choice_of(to_apply.computation)
        if choice is None or not is_iota(scope, inputs[1], dimension):
            return None
        return cls(scope, choice, inputs, inits, to_apply, dimension)

    def emit(self, write: Writer) -> None:
        """Write the loops of all results."""
        whole = replace(self, inputs=(in_memory(self.scope, self.inputs[0]), self.inputs[1]))
        best = whole.best()
        dims = tuple(whole.inputs[0].shape.dims[d] for d in best.kept)
        if best.is_by_rows:
            with nest.outer(self.scope, dims, 2 * self._length) as kept:
                write(kept, whole.result(kept, *whole.row(kept)))
            return
        state = whole.stored(best)

        def found(kept: Sequence[Expr]) -> Expr:
            return whole.monoid.lifted(state.at(*kept))

        first = last = whole.stored(whole.position(found, "minimum"))
        if whole.choice.is_last_value and whole.monoid.element.is_float:
            last = whole.stored(whole.position(found, "maximum"))
        with nest.outer(self.scope, dims) as kept:
            write(kept, whole.result(kept, first.at(*kept), last.at(*kept)))

    @property
    def monoid(self) -> Monoid:
        """Return the monoid of the extremum."""
        element_type = self.inputs[0].shape.element_type
        monoid = monoid_of(self.choice.operation, element_type, is_fast=False)
        assert monoid is not None, element_type
        return monoid

    @property
    def _length(self) -> int:
        return self.inputs[0].shape.dims[self.dimension]

    def best(self) -> ReorderedReduction:
        """Return the reduction of the values to the best one, with -0 read as +0."""
        values = self.inputs[0]
        worst = _worst(values.shape.element_type, self.choice.operation)
        init = Element(ArrayShape(worst.type), lambda: worst)
        return self._reduction(self.monoid, replace(values, at=self._merged), init)

    def _merged(self, *index: Expr) -> Expr:
        """Return the value at an index, -0 as +0."""
        value = self.scope.bind(self.inputs[0].at(*index))
        if not value.type.is_float:
            return value
        zero = Constant(value.type, 0.0)
        is_zero = apply("compare-EQ", value, zero, type=PRED)
        return apply("select", is_zero, zero, value, type=value.type)

    def position(self, state: _State, operation: str) -> ReorderedReduction:
        """Return the reduction to the first ("minimum") or last position whose value is the best.

        ``state`` gives the state of the best value by an index of the results.
        """
        none = Constant(S32, self._length if operation == "minimum" else -1)
        d, dims = self.dimension, self.inputs[0].shape.dims

        def at(*index: Expr) -> Expr:
            key = self.scope.bind(self.monoid.lifted(self.scope.bind(self._merged(*index))))
            best = state((*index[:d], *index[d + 1 :]))
            is_best = apply("compare-EQ", key, best, type=PRED)
            place = apply("convert", index[d], type=S32)
            return apply("select", is_best, place, none, type=S32)

        positions = Element(ArrayShape(S32, dims), at, array=self.inputs[0].array)
        init = Element(ArrayShape(S32), lambda: none)
        return self._reduction(Monoid(operation, S32, S32), positions, init)

    def _reduction(self, monoid: Monoid, operand: Element, init: Element) -> ReorderedReduction:
        kept = tuple(d for d in range(operand.shape.rank) if d != self.dimension)
        return ReorderedReduction(self.scope, monoid, operand, init, kept, (self.dimension,))

    def row(self, kept: Sequence[Expr]) -> tuple[Expr, Expr]:
        """Write the loops of one row; return the first and the last position of its best value."""
        scope, monoid = self.scope, self.monoid
        best = scope.bind(monoid.lifted(scope.bind(self.best().value(kept))))
        first = self.position(lambda index: best, "minimum").value(kept)
        if not (self.choice.is_last_value and monoid.element.is_float):
            return first, first
        last = scope.mutable(S32, first)
        # Equal values have equal bits unless they are zeros.
        zero = monoid.lifted(Constant(monoid.element, 0.0))
        with scope.when(apply("compare-EQ", best, zero, type=PRED)):
            scope.assign(last, self.position(lambda index: best, "maximum").value(kept))
        return first, scope.bind(last)

    def stored(self, reduction: ReorderedReduction) -> Element:
        """Write a reduction into workspace; return its reader."""
        scope, shape = self.scope, reduction.operand.shape
        dims = tuple(shape.dims[d] for d in reduction.kept)
        array = scope.scratch(shape.element_type, math.prod(dims), frozen=True)
        reduction.emit(lambda kept, values: scope.store(array, ix.linearize(kept, dims), values[0]))
        return array_reader(array, ArrayShape(shape.element_type, dims))

    def result(self, kept: Sequence[Expr], first: Expr, last: Expr) -> tuple[Expr, ...]:
        """Return the results of a row: the computation applied to the inits and the pair found."""
        d, found = self.dimension, []
        for operand, position in zip(self.inputs, (last, first), strict=True):
            place = self.scope.bind(apply("convert", position, type=INDEX))
            # This changes nothing, as some value is the best; but positions start out of bounds.
            place = ix.clamp(0, place, self._length - 1)
            found.append(self.scope.bind(operand.at(*kept[:d], place, *kept[d:])))
        start = [self.scope.bind(init.at()) for init in self.inits]
        return tuple(apply_combiner(self.scope, self.to_apply, (*start, *found)))


def _worst(element_type: ElementType, operation: str) -> Constant:
    """Return the identity of maximum or minimum in a type."""
    is_maximum = operation == "maximum"
    if element_type.is_float:
        return Constant(element_type, -math.inf if is_maximum else math.inf)
    low, high = 0, 2**element_type.bits - 1
    if element_type.kind == "signed":
        low, high = -(2 ** (element_type.bits - 1)), 2 ** (element_type.bits - 1) - 1
    return Constant(element_type, low if is_maximum else high)
