"""Write passes of fast Fourier transforms for blocks of threads (runtime/hlo_block_fft.h).

A block has a line, or several neighbouring ones, in shared memory twice: each stage goes from one
buffer to the other, its butterflies shared by the threads. Along the last dimension neighbouring
threads read neighbouring numbers of a line, along others those of neighbouring lines. Lines that do
not fit there, and cannot be split into two passes that do, are in memory, still by all threads.
"""

from __future__ import annotations

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Array, Constant, Expr, Pointer
from backend_c.ir.scope import apply
from backend_c.kernels.parts.fourier.block_lines import (
    BlockLines,
    Group,
    half_a_sector,
    have_room,
)
from backend_c.kernels.parts.fourier.fourier_pass import (
    NAMES,
    Numbers,
    Pass,
    PassWriter,
    complex_at,
)
from backend_c.kernels.parts.fourier.fourier_plan import (
    convolution_length,
    is_smooth,
    radices,
    similar_factors,
)
from backend_c.kernels.parts.fourier.fourier_workspace import Buffers
from hlo.types import ElementType

_BUTTERFLIES = (2, 3, 4, 5, 8)  # radices with a function of their own


def block_factors(length: int, part: ElementType, *, is_last: bool) -> tuple[int, int] | None:
    """Return the factors n1, n2 that a length is split into if lines do not fit in shared memory.

    None if they fit, or if no factors do. Along dimensions other than the last, as many lines must
    fit together as are half of a memory transaction.
    """
    lines = 1 if is_last else half_a_sector(part)
    if _fits(length, lines, part):
        return None
    for first, second in similar_factors(length):
        if first > 1 and _fits(first, lines, part) and _fits(second, lines, part):
            return first, second
    return None


def _fits(length: int, lines: int, part: ElementType) -> bool:
    """Return whether lines fit in shared memory, with the last coefficient of half a spectrum."""
    numbers = length if is_smooth(length) else convolution_length(length)
    return have_room(numbers + 1, lines, part)


class BlockPass(PassWriter):
    """Write a pass by blocks of threads, a group of neighbouring lines each."""

    def __init__(self, of: Pass) -> None:
        super().__init__(of)
        # Neighbouring numbers are neighbours where they go.
        self._is_along = of.is_last and of.target.exchanged is None
        # One more for the last coefficient of half a spectrum.
        numbers, dims = of.numbers + of.has_signal, of.target.dims
        self.lines = BlockLines(of.scope, of.part, dims, of.axis, numbers, self._is_along)

    def emit(self) -> None:
        """Write all transforms."""
        of, scope = self.of, self.of.scope
        tables = of.tables()
        with self.lines.groups() as group:
            buffers = group.buffers
            self._read(group)
            scope.barrier()
            if of.has_signal and of.is_inverse:
                with self.lines.each(of.length // 2 + 1, is_along=True) as (k, line):
                    self._numbers(buffers).halve(k, line, tables["signal"])
                scope.barrier()
            self.transform(buffers, tables)
            self._write(group, tables)
            scope.barrier()

    # Transforms

    def _meet(self) -> None:
        self.of.scope.barrier()

    def _clear(self, buffers: Buffers) -> None:
        of = self.of
        with self.lines.each(of.numbers - of.length, is_along=True) as (k, line):
            for part in (0, 1):
                place = self._numbers(buffers).place(ix.add(k, of.length), line, part)
                of.scope.store(*place, Constant(of.part, 0.0))

    def _stages(self, buffers: Buffers, tables: dict[str, Array]) -> None:
        of, combined = self.of, 1
        for radix in radices(of.numbers):
            count = of.numbers // combined // radix
            has_own = radix in _BUTTERFLIES
            lines = self.lines.lines, self.lines.pitch
            sizes = combined, count, *lines, *(() if has_own else (radix,))
            of.scope.call(
                f"hlo_block_fft_{NAMES[of.part]}_{radix if has_own else 'any'}",
                Pointer(buffers.current, buffers.start),
                Pointer(buffers.other, buffers.start),
                Pointer(tables["roots"], ix.constant(0)),
                *map(ix.constant, sizes),
            )
            of.scope.barrier()
            buffers.advance(1)
            combined *= radix

    def _multiply(
        self,
        buffers: Buffers,
        factors: Array,
        numbers: int,
        *,
        is_exchanged: bool = False,
        swaps: bool = False,
    ) -> None:
        with self.lines.each(numbers, is_along=True) as (k, line):
            factor = complex_at(self.of.scope, factors, k)
            ours = self._numbers(buffers)
            ours.multiply(k, line, factor, is_exchanged=is_exchanged, swaps=swaps)

    def _numbers(self, buffers: Buffers) -> Numbers:
        """Return the accessor of numbers in workspace."""
        return Numbers(self.of, lambda k, line, part: self.lines.place(buffers, k, line, part))

    # Reading and writing

    def _read(self, group: Group) -> None:
        """Write the loads of all lines into workspace."""
        of, numbers = self.of, self._numbers(group.buffers)
        with self.lines.each(of.places_read, is_along=of.is_last) as (k, line):
            numbers.put(k, line, of.source.at(*self.lines.index(group, k, line)))

    def _write(self, group: Group, tables: dict[str, Array]) -> None:
        """Write the stores of all lines' results."""
        of, numbers = self.of, self._numbers(group.buffers)
        places = of.target.dims[of.axis]
        with (
            self.lines.each(places, is_along=self._is_along) as (k, line),
            self.lines.when_there(group, line),
        ):
            index = self.lines.index(group, k, line)
            value = of.target.value(*numbers.result(k, line, tables), index)
            self._store(of.target.array, of.target.offset(index), value)

    def _store(self, array: Array, offset: Expr, value: Expr) -> None:
        """Store an element; into a view of real numbers as complex ones, both components."""
        scope = self.of.scope
        if array.memory is None:
            scope.store(array, offset, value)
            return
        numbers, pair = Array(array.name, array.memory, 2 * array.elements), scope.bind(value)
        for number, name in enumerate(("real", "imag")):
            place = ix.add(ix.multiply(offset, 2), number)
            scope.store(numbers, place, apply(name, pair, type=array.memory))
