"""Write folds along short rows in row-major order: a row in each lane.

    for strip of rows:
        t = transposed x[first …, :]
        for place in a row:  for lane: state[lane] = f(state[lane], t[place, lane])

Nothing is reordered, so that any computation of straight-line code may be folded, of several
operands, too: argmax, argmin, a norm with its position. The computation takes a few instructions
for a vector of rows, where a row by itself fills no vector, or has a search behind its extremum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from backend_c.ir import index as ix
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import Array, Constant, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.ir.short_rows import ShortRows, rows_of_strip
from backend_c.kernels.parts.reduction.arg_extremum import (
    Choice,
    choice_of,
    in_memory,
    is_iota,
)
from backend_c.kernels.parts.reduction.combiner import Combiner, apply_combiner
from hlo.passes.index_paths import WRITTEN_OUT
from hlo.passes.row_loops.rows import Rows
from hlo.types import F16, F32, S32, ElementType

_FEWEST = 16  # neighbouring rows: fewer are no lanes
_LONGEST = 127  # elements of a row: the strip's are in the first cache
_ROWS = 32  # in a strip
_VECTOR, _BYTES = 16, 64  # elements of a vector that are computed at a time, and its bytes
# Rows that are whole vectors, and more than two of them, take an extremum and a search less time:
# argmax of f32[4166,48] 63 us and of f32[3125,64] 58, side by side 59 and 58; of s64[4166,48] 42,
# side by side 66.
_LONGEST_WHOLE = 32
# Of rows of up to so many floats compilers make vectors; of rows that are longer, and hold few
# enough elements to be written out, only if they are integers. Words of f16 that lie apart are
# converted one at a time: argmax of f16[66666,3] takes 1160 us, side by side 190.
_SHUFFLED, _SHUFFLED_NARROW, _SHUFFLED_HALVES = 4, 3, 1


class ShortRowFold:
    """Write the folds of ``inputs`` from ``inits`` along their last dimension."""

    def __init__(
        self,
        scope: Scope,
        inputs: Sequence[Element],
        inits: Sequence[Element],
        combiner: Combiner,
    ) -> None:
        self._scope, self._inputs, self._inits = scope, inputs, inits
        self._combiner = combiner
        *self._kept, self._length = inputs[0].shape.dims
        self._width = rows_of_strip(self._length, F32.bits // 8) or _ROWS

    @property
    def is_here(self) -> bool:
        """Return whether there are short rows, and lanes full of them."""
        types = [one.shape.element_type for one in self._inputs]
        is_static = not any(one.sizes for one in self._inputs)
        if not is_static or any(t.is_complex for t in types) or self._columns < _FEWEST:
            return False
        if self._length > WRITTEN_OUT:
            whole = max(_BYTES // types[0].numpy.itemsize, _VECTOR)
            is_whole = self._length > _LONGEST_WHOLE and self._length % whole == 0
            return self._length <= _LONGEST and not (is_whole and self._choice)
        narrow = _SHUFFLED_HALVES if types[0] is F16 else _SHUFFLED_NARROW
        shuffled = narrow if types[0].bits < F32.bits else _SHUFFLED
        return types[0].is_float and self._length > shuffled and self._choice is not None

    @property
    def _columns(self) -> int:
        """Return how many rows that follow each other are divided into strips."""
        if self._scope.is_flat:
            return math.prod(self._kept)
        return self._kept[-1] if self._kept else 1

    def emit(self, write: Writer) -> None:
        """Write the loops of all strips."""
        rows = Rows(math.prod(self._kept), self._length)
        strip = ShortRows(self._scope, rows, self._columns, self._width)
        readers = [self._reader(strip, operand) for operand in self._inputs]
        choice = self._choice
        with strip.each(len(self._combiner.computation.instructions)):
            if choice is None:
                states = self._folded(strip, readers)
            else:
                states = self._found(strip, readers, choice)
            with strip.lanes():
                results = [self._scope.bind(self._scope.load(one, strip.lane)) for one in states]
                if choice is not None:
                    results = self._with_inits(results)
                write(strip.single_index(self._kept), tuple(results))

    @cached_property
    def _choice(self) -> Choice | None:
        """Return which pair an argmax or argmin keeps; None for other computations."""
        if len(self._inputs) != 2 or not is_iota(self._scope, self._inputs[1], len(self._kept)):
            return None
        return choice_of(self._combiner.computation)

    def _folded(self, strip: ShortRows, readers: Sequence[Element]) -> Sequence[Array]:
        """Write the fold of the computation from the inits; return its states."""
        scope = self._scope
        states = [
            scope.local(init.shape.element_type, self._width, is_opaque=False)
            for init in self._inits
        ]
        with strip.lanes():
            for state, init in zip(states, self._inits, strict=True):
                scope.store(state, strip.lane, init.at())
        with strip.places() as place, strip.lanes():
            before = [scope.bind(scope.load(state, strip.lane)) for state in states]
            elements = [scope.bind(strip.whole(reader, place)) for reader in readers]
            after = apply_combiner(scope, self._combiner, (*before, *elements))
            for state, value in zip(states, after, strict=True):
                scope.store(state, strip.lane, value)
        return states

    def _found(
        self, strip: ShortRows, readers: Sequence[Element], choice: Choice
    ) -> Sequence[Array]:
        """Write the search for the first of the best elements; return the values, as registers hold
        them, and the places, of 32 bits: the computation's own types have masks of other widths,
        which compilers do not combine in vectors."""
        scope = self._scope
        element_type = readers[0].shape.element_type
        is_wide = element_type.is_float or element_type.bits >= S32.bits
        state_type = element_type if is_wide else S32
        best = scope.local(state_type, self._width, is_opaque=False)
        found = scope.local(S32, self._width, is_opaque=False)

        def element(place: Expr) -> Expr:
            return scope.bind(_converted(strip.whole(readers[0], place), state_type))

        with strip.lanes():
            scope.store(best, strip.lane, element(ix.constant(0)))
            scope.store(found, strip.lane, Constant(S32, 0))
        with strip.places() as place, strip.lanes():
            before, value = scope.bind(scope.load(best, strip.lane)), element(place)
            last = scope.bind(scope.load(found, strip.lane))
            is_better = scope.bind(choice.is_better(value, before))
            chosen = apply("select", is_better, value, before, type=state_type)
            if choice.is_last_value and element_type.is_float:
                is_kept = choice.is_better(before, value)
                chosen = apply("select", is_kept, before, value, type=state_type)
            scope.store(best, strip.lane, chosen)
            at = apply("convert", place, type=S32)
            scope.store(found, strip.lane, apply("select", is_better, at, last, type=S32))
        return best, found

    def _with_inits(self, found: Sequence[Expr]) -> list[Expr]:
        """Apply the computation to the inits and the pair that was found."""
        start = [self._scope.bind(init.at()) for init in self._inits]
        types = [one.shape.element_type for one in self._inputs]
        pair = [_converted(one, t) for one, t in zip(found, types, strict=True)]
        return apply_combiner(self._scope, self._combiner, (*start, *pair))

    def _reader(self, strip: ShortRows, operand: Element) -> Element:
        """Return a reader of transposed elements; of positions in a row as they are computed."""
        if is_iota(self._scope, operand, len(self._kept)):
            return operand
        return strip.transposed(in_memory(self._scope, operand))


def _converted(value: Expr, element_type: ElementType) -> Expr:
    """Convert an integer to a type that has it."""
    return value if value.type is element_type else apply("convert", value, type=element_type)
