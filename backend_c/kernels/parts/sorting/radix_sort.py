"""Write sorts of rows by a known order of one operand, and their first few elements: radix sorts.

Elements become *words*, unsigned integers in their order (runtime/hlo_sort.h). One operand alone is
sorted as words, which are then turned back. Of several, words of 32 bits are packed with the
position in the row below them, those of 64 bits have it beside them; the operands are then read in
the order of the positions. All is stable, and the same with any number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer, array_reader
from backend_c.ir.loop_ir import INDEX, Apply, Array, Constant, Expr, Pointer
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.sorting.block_radix_sort import BlockRadixSort, has_blocks
from backend_c.kernels.parts.sorting.block_selection import selects, write_selection
from backend_c.kernels.parts.sorting.orderings import Order
from hlo.types import F32, F64, PRED, S32, S64, U32, U64, ElementType

_CHUNKS = 8  # of a row, sorted in parallel where there are few rows
_LONG = 1 << 15
_DIGIT = 11  # bits, as in hlo_sort.h
_SLACK = 32  # HLO_SORT_BLOCK of hlo_sort.h
_KINDS = {U32: 0, S32: 1, F32: 2}  # as hlo_sort.h numbers them
_COST = 32  # element operations that sorting takes, roughly
_Index = tuple[Expr, ...]


class RadixSort:
    """Write one sort by ``order``; the first ``keep`` elements of each row are the result."""

    def __init__(
        self,
        scope: Scope,
        operands: Sequence[Element],
        dimension: int,
        order: Order,
        keep: int | None = None,
    ) -> None:
        self._scope, self._operands, self._dimension = scope, operands, dimension
        dims = operands[0].shape.dims
        self._length = dims[dimension]
        self._keep = self._length if keep is None else keep
        self._others = (*dims[:dimension], *dims[dimension + 1 :])
        self._rows = math.prod(self._others)
        self._key = operands[order.operand]
        self._order = order
        element_type = self._key.shape.element_type
        # Narrower floats are ordered as f32, to which they are widened exactly.
        self._bits = element_type.bits if not element_type.is_float else 32
        if element_type is F64:
            self._bits = 64
        self._is_alone = len(operands) == 1
        self._is_packed = not self._is_alone and self._bits <= 32
        self._is_ordered = not self._is_alone and self._bits > 32
        self._word = U64 if self._bits > 32 or self._is_packed else U32
        prefix = "ordered_" if self._is_ordered else ""
        self._form = f"{prefix}{self._word}"

    @staticmethod
    def fits(operands: Sequence[Element], dimension: int) -> bool:
        """Return whether rows are static and have fewer than 2**31 elements."""
        length = operands[0].shape.dims[dimension]
        return not any(operand.sizes for operand in operands) and length < 2**31

    def emit(self, write: Writer) -> None:
        """Write the keys, their sort or selection, and the results."""
        if not (self._rows and self._length and self._keep):
            return
        scope, elements = self._scope, self._rows * self._length
        if not self._is_alone:
            self._operands = [self._in_memory(operand) for operand in self._operands]
            self._key = self._operands[self._order.operand]
        by_blocks = has_blocks(self._length, scope)
        # The room of hlo_sort_least_u32, 2 keep + _SLACK words, is then about half a row at most.
        if not by_blocks and self._is_packed and 4 * self._keep + _SLACK <= self._length:
            self._results([self._least()], 2 * self._keep + _SLACK, write)
            return
        if by_blocks and self._is_packed and selects(self._keep, self._length):
            self._results([self._selected()], self._keep, write)
            return
        words = [scope.scratch(self._word, elements)]
        if self._is_ordered:
            words.append(scope.scratch(U32, elements))
        with nest.split(scope, self._key.shape.dims, 4) as index:
            place = self._place(index, self._length)
            values = self._words(self._key.at(*index), index[self._dimension])
            for array, value in zip(words, values, strict=False):
                scope.store(array, place, value)
        others = [scope.scratch(array.element_type, elements) for array in words]
        if by_blocks:
            words = self._by_blocks().sort(words, others, self._length)
        elif self._rows < _CHUNKS and self._length >= _LONG:
            words = self._sort_chunks(words, others)
        else:
            self._sort_rows(words, others)
        self._results(words, self._length, write)

    def _by_blocks(self) -> BlockRadixSort:
        """Return the writer of the sort by blocks of threads."""
        low = self._low()
        limits = low, low + self._bits
        return BlockRadixSort(self._scope, self._form, self._rows, *limits, self._by())

    def _in_memory(self, operand: Element) -> Element:
        """Return an operand that is cheap to read in any order, written to scratch if computed."""
        scope, shape = self._scope, operand.shape
        if operand.array is not None or _is_of_index(operand, scope):
            return operand
        array = scope.scratch(shape.element_type, shape.elements, frozen=True)
        with nest.split(scope, shape.dims) as index:
            scope.store(array, ix.linearize(index, shape.dims), operand.at(*index))
        return array_reader(array, shape)

    def _place(self, index: _Index, length: int) -> Expr:
        """Return the offset of an index among rows of ``length`` elements, one after the other."""
        d = self._dimension
        row = ix.linearize((*index[:d], *index[d + 1 :]), self._others)
        return ix.add(ix.multiply(row, length), index[d])

    def _words(self, value: Expr, position: Expr) -> tuple[Expr, ...]:
        """Return (word, position) of an element, or the one word that packs both."""
        value = self._scope.bind(value)
        if not self._is_packed:
            return _word(value, self._word), apply("convert", position, type=U32)
        key = _word(value, U32)
        if self._order.merged:
            key = _merged(value, key)
        if self._order.falls:
            key = apply("xor", key, Constant(U32, 2**self._bits - 1))
        high = apply("shift-left", apply("convert", key, type=U64), Constant(U64, 32))
        return (apply("or", high, apply("convert", position, type=U64)),)

    def _results(self, words: Sequence[Array], length: int, write: Writer) -> None:
        """Write the results from sorted words, which lie in rows of ``length``."""
        scope, d, dims = self._scope, self._dimension, self._key.shape.dims
        with nest.split(scope, (*dims[:d], self._keep, *dims[d + 1 :]), 4) as index:
            place = self._place(index, length)
            found = scope.bind(scope.load(words[-1], place))
            if self._is_alone:
                write(index, (_value(found, self._key.shape.element_type),))
                return
            number = apply("convert", found, type=U32) if self._is_packed else found
            position = scope.bind(apply("convert", number, type=INDEX))
            source = (*index[:d], position, *index[d + 1 :])
            write(index, tuple(operand.at(*source) for operand in self._operands))

    @contextmanager
    def _each_row(self) -> Iterator[Expr]:
        """Open a loop over rows, each of which one thread sorts alone."""
        with self._scope.loop(self._rows, self._kind()) as row:
            yield row

    def _kind(self) -> str:
        """Return the kind of the loop over rows or chunks, whose body is one runtime call."""
        kind = nest.loop_kind(self._scope, _COST * self._rows * self._length)
        # As lanes: on a device a call belongs to one lane, not to all lanes of a block.
        return "parallel lanes" if kind == "parallel" else kind

    def _low(self) -> int:
        """Return the lowest bit of the keys within a word."""
        return 32 if self._is_packed else 0

    def _by(self) -> tuple[Expr, Expr]:
        """Return the runtime's arguments (merged, xor mask); packed words are keys already."""
        falls = self._order.falls and not self._is_packed
        merged = self._order.merged and not self._is_packed
        ones = Constant(self._word, 2**self._bits - 1 if falls else 0)
        return ix.constant(int(merged)), ones

    def _pointers(self, arrays: Sequence[Array], start: Expr) -> list[Expr | Pointer]:
        """Return the addresses of a word and of the position beside it; null if there is none."""
        pointers: list[Expr | Pointer] = [Pointer(array, start) for array in arrays]
        return pointers if self._is_ordered else [*pointers, ix.constant(0)]

    def _sort_rows(self, words: Sequence[Array], others: Sequence[Array]) -> None:
        """Write the sort of each row."""
        with self._each_row() as row:
            start = ix.multiply(row, self._length)
            arguments = [*self._pointers(words, start), *self._pointers(others, start)]
            low = self._low()
            limits = ix.constant(low), ix.constant(low + self._bits)
            count = ix.constant(self._length)
            self._scope.call(f"hlo_sort_{self._form}", *arguments, count, *limits, *self._by())

    def _least(self) -> Array:
        """Select the first elements of each row by one thread; return them, sorted and packed."""
        scope, length = self._scope, 2 * self._keep + _SLACK
        kept, other = (scope.scratch(U64, self._rows * length) for _ in range(2))
        row_of, kind = self._keys_of_rows()
        with self._each_row() as row:
            start = ix.multiply(row, length)
            scope.call(
                "hlo_sort_least_u32",
                Pointer(row_of, ix.multiply(row, self._length)),
                ix.constant(kind),
                Constant(U32, self._flip),
                ix.constant(self._length),
                ix.constant(self._keep),
                Pointer(kept, start),
                Pointer(other, start),
            )
        return kept

    def _selected(self) -> Array:
        """Select the first elements of each row by blocks of threads; return them as
        :meth:`_least`."""
        row_of, kind = self._keys_of_rows()
        form = ix.constant(kind), Constant(U32, self._flip)
        return write_selection(self._scope, (row_of, form), self._rows, self._length, self._keep)

    @property
    def _flip(self) -> int:
        """Return the mask that keys are xor-ed with: all ones in descending order."""
        return 2**self._bits - 1 if self._order.falls else 0

    def _keys_of_rows(self) -> tuple[Array, int]:
        """Return the array of 32-bit keys, row after row, and their kind (hlo_sort.h)."""
        scope, key = self._scope, self._key
        element_type, rank = key.shape.element_type, key.shape.rank
        is_last = self._dimension == rank - 1
        # The runtime's words of floats are in total order, in which the signs of zeros differ.
        is_known = element_type in _KINDS and not self._order.merged
        if key.array is not None and key.array.memory is None and is_last and is_known:
            return key.array, _KINDS[element_type]
        words = scope.scratch(U32, self._rows * self._length)
        with nest.split(scope, key.shape.dims, 4) as index:
            value = scope.bind(key.at(*index))
            word = _word(value, U32)
            word = _merged(value, word) if self._order.merged else word
            scope.store(words, self._place(index, self._length), word)
        return words, _KINDS[U32]

    def _sort_chunks(self, words: list[Array], others: list[Array]) -> list[Array]:
        """Sort few long rows in parallel chunks, digit by digit; return the arrays of the
        result."""
        scope, low = self._scope, self._low()
        counts = scope.scratch(U32, self._rows * _CHUNKS << _DIGIT)
        for shift in range(low, low + self._bits, _DIGIT):
            bits = min(_DIGIT, low + self._bits - shift)
            digit = ix.constant(shift), ix.constant(bits), *self._by()
            with self._each_chunk(bits) as (start, first, count, place):
                from_ = Pointer(words[0], ix.add(start, first))
                into = Pointer(counts, place)
                scope.call(f"hlo_sort_count_{self._form}", from_, count, *digit, into)
            with scope.loop(self._rows) as row:
                into = Pointer(counts, ix.multiply(row, _CHUNKS << bits))
                scope.call("hlo_sort_starts", into, ix.constant(_CHUNKS), ix.constant(bits))
            with self._each_chunk(bits) as (start, first, count, place):
                source = self._pointers(words, ix.add(start, first))
                target = self._pointers(others, start)
                starts = Pointer(counts, place)
                name = f"hlo_sort_place_{self._form}"
                scope.call(name, *source, count, *digit, starts, *target)
            words, others = others, words
        return words

    @contextmanager
    def _each_chunk(self, bits: int) -> Iterator[tuple[Expr, Expr, Expr, Expr]]:
        """Open a loop over the chunks of all rows.

        Yields (row's start, first element in it, number of elements, offset of the digit counts).
        """
        scope, size = self._scope, -(-self._length // _CHUNKS)
        with scope.loop(self._rows * _CHUNKS, self._kind()) as task:
            row, chunk = ix.delinearize(task, (self._rows, _CHUNKS))
            first = ix.multiply(chunk, size)
            count = ix.clamp(0, ix.subtract(self._length, first), size)
            yield ix.multiply(row, self._length), first, count, ix.multiply(task, 1 << bits)


def _is_of_index(operand: Element, scope: Scope) -> bool:
    """Return whether elements are just a converted index, as those of iota."""
    with scope.undone(), scope.draft(operand.shape.dims) as index:
        value = operand.at(*index)
    return isinstance(value, Apply) and value.operation == "convert" and value.operands[0] in index


def _word(value: Expr, word: ElementType) -> Expr:
    """Map an element to an unsigned integer of the same order."""
    key, bits = value, value.type.bits
    if value.type.is_float:
        key, bits = apply("total-order", value, type=S64 if word is U64 else S32), word.bits
    unsigned = apply("convert", key, type=word)
    if key.type.kind != "signed":
        return unsigned
    return apply("and", apply("add", unsigned, Constant(word, 2 ** (bits - 1))), _ones(word, bits))


def _merged(value: Expr, word: Expr) -> Expr:
    """Return the word of a float with zeros equal, and NaN equal and the greatest."""
    is_zero = apply("compare-EQ", value, Constant(value.type, 0.0), type=PRED)
    is_nan = apply("compare-NE", value, value, type=PRED)
    # The word of +0, which -0 takes, too.
    middle = Constant(word.type, 2 ** (word.type.bits - 1))
    word = apply("select", is_zero, middle, word, type=word.type)
    return apply("select", is_nan, _ones(word.type, word.type.bits), word, type=word.type)


def _value(word: Expr, element_type: ElementType) -> Expr:
    """Convert a word back to the element it was made of."""
    if element_type.kind not in ("signed", "float"):
        return apply("convert", word, type=element_type)
    bits = word.type.bits if element_type.is_float else element_type.bits
    shifted = apply("subtract", word, Constant(word.type, 2 ** (bits - 1)))
    if not element_type.is_float:
        return apply("convert", shifted, type=element_type)
    key = apply("convert", shifted, type=S64 if word.type is U64 else S32)
    return apply("from-total-order", key, type=element_type)


def _ones(word: ElementType, bits: int) -> Constant:
    return Constant(word, 2**bits - 1)
