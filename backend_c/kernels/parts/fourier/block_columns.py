"""Write exact Fourier transforms along one dimension for blocks of threads, in f64.

Each result of a stage is a sum of its own, defined to the last bit (runtime/hlo_fft.h), so threads
share them: those of a block, for lines that fit in shared memory; all threads, in a launch for each
stage, for longer ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Array, Constant, Expr, Pointer
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.fourier.block_lines import BlockLines, have_room
from backend_c.kernels.parts.fourier.fourier import Emit, Read
from backend_c.kernels.parts.fourier.fourier_plan import prime_factors
from backend_c.kernels.parts.fourier.fourier_workspace import Buffers
from backend_c.kernels.parts.fourier.real_fourier import is_real
from hlo.elementary import roots_of_unity
from hlo.types import F64, PRED

_Index = tuple[Expr, ...]


class BlockColumns:
    """Write transforms along an axis, as :class:`.fourier.Columns` does, by blocks of threads."""

    def __init__(
        self, scope: Scope, dims: Sequence[int], axis: int, length: int, is_inverse: bool
    ) -> None:
        self._scope, self._axis, self._length = scope, axis, length
        self._dims, self._places = tuple(dims), dims[axis]
        self._sign = Constant(F64, 1.0 if is_inverse else -1.0)

    def emit(self, read: Read, write: Emit, *, is_half: bool) -> None:
        """Write the transforms; ``is_half``: the input is half the spectrum of a real signal."""
        way = self._in_blocks if have_room(self._length, 1, F64) else self._in_launches
        way(read, write, is_half)

    def _stages(self) -> Iterator[tuple[int, int, int]]:
        """Yield (radix, length combined before, number of transforms left) of each stage."""
        combined = 1
        # Exact transforms are split by the smallest prime first (docs/numerics.md), so that it is
        # combined last.
        for radix in reversed(prime_factors(self._length)):
            yield radix, combined, self._length // combined // radix
            combined *= radix

    def _tables(self) -> list[Pointer]:
        """Add the roots of unity to the kernel."""
        tables = map(self._scope.table, roots_of_unity(self._length))
        return [Pointer(table, ix.constant(0)) for table in tables]

    def _numbers(
        self, value: tuple[Expr, Expr], k: Expr, is_half: bool
    ) -> Iterator[tuple[Expr, tuple[Expr, Expr], Expr | None]]:
        """Yield the (place, (real, imaginary), condition) stores of number k of the input.

        Half a spectrum is mirrored: X[n - k] = conj(X[k]); the constant and, for even lengths, the
        middle coefficient count as real.
        """
        real, imag = map(self._scope.bind, value)
        if not is_half:
            yield k, (real, imag), None
            return
        real_only = is_real(self._length, k)
        own = apply("select", real_only, Constant(F64, 0.0), imag, type=F64)
        yield k, (real, own), None
        mirrored = ix.modulo(ix.subtract(self._length, k), self._length)
        yield mirrored, (real, apply("negate", imag)), apply("not", real_only, type=PRED)

    # In shared memory

    def _in_blocks(self, read: Read, write: Emit, is_half: bool) -> None:
        """Write transforms of lines that fit in shared memory, a group of lines per block."""
        scope, is_last = self._scope, self._axis == len(self._dims) - 1
        lines = BlockLines(scope, F64, self._dims, self._axis, self._length, is_last)
        tables = self._tables()
        with lines.groups() as group:
            buffers = group.buffers
            given = self._length // 2 + 1 if is_half else self._length
            with lines.each(given, is_along=is_last) as (k, line):
                value = read(lines.index(group, k, line))
                for place, parts, holds in self._numbers(value, k, is_half):
                    at = [lines.place(buffers, place, line, part) for part in (0, 1)]
                    self._keep(at, parts, holds)
            scope.barrier()
            for radix, combined, count in self._stages():
                self._stage(lines, buffers, tables, (radix, combined, count))
                scope.barrier()
                buffers.advance(1)
            with (
                lines.each(self._places, is_along=is_last) as (k, line),
                lines.when_there(group, line),
            ):
                found = (scope.load(*lines.place(buffers, k, line, part)) for part in (0, 1))
                write(lines.index(group, k, line), *map(scope.bind, found))
            scope.barrier()

    def _keep(
        self, at: Sequence[tuple[Array, Expr]], parts: Sequence[Expr], holds: Expr | None
    ) -> None:
        """Store both parts of a number, under a condition unless it is None."""
        if holds is None:
            for place, part in zip(at, parts, strict=True):
                self._scope.store(*place, part)
            return
        with self._scope.when(holds):
            self._keep(at, parts, None)

    def _stage(
        self,
        lines: BlockLines,
        buffers: Buffers,
        tables: Sequence[Pointer],
        sizes: tuple[int, int, int],
    ) -> None:
        """Write one stage of a group's transforms."""
        scope = self._scope
        with lines.each(self._length, is_along=True) as (result, line):
            start = ix.add(buffers.start, ix.multiply(line, lines.pitch))
            scope.call(
                "hlo_block_fft_exact_padded",
                Pointer(buffers.current, start),
                Pointer(buffers.other, start),
                *tables,
                self._sign,
                *map(ix.constant, (*sizes, lines.lines * lines.pitch)),
                result,
            )

    # By all threads

    def _in_launches(self, read: Read, write: Emit, is_half: bool) -> None:
        """Write transforms of longer lines, a launch per stage.

        A line in scratch is its real parts, then its imaginary parts.
        """
        scope, length = self._scope, self._length
        others = (*self._dims[: self._axis], *self._dims[self._axis + 1 :])
        count = math.prod(others)
        arrays = [scope.scratch(F64, 2 * count * length) for _ in range(2)]
        tables = self._tables()

        def parts_at(array: Array, line: Expr, k: Expr) -> list[tuple[Array, Expr]]:
            start = ix.add(ix.multiply(line, 2 * length), k)
            return [(array, start), (array, ix.add(start, length))]

        def index(line: Expr, k: Expr) -> _Index:
            other = [scope.bind(i) for i in ix.delinearize(line, others)]
            return (*other[: self._axis], k, *other[self._axis :])

        with nest.flat(scope, (count, length // 2 + 1 if is_half else length)) as (line, k):
            line, k = scope.bind(line), scope.bind(k)
            for place, parts, holds in self._numbers(read(index(line, k)), k, is_half):
                self._keep(parts_at(arrays[0], line, place), parts, holds)
        for sizes in self._stages():
            with nest.flat(scope, (count, length)) as (line, k):
                start = scope.bind(ix.multiply(line, 2 * length))
                scope.call(
                    "hlo_block_fft_exact_plain",
                    *(Pointer(array, start) for array in arrays),
                    *tables,
                    self._sign,
                    *map(ix.constant, (*sizes, length)),
                    scope.bind(k),
                )
            arrays.reverse()
        with nest.flat(scope, (count, self._places)) as (line, k):
            line, k = scope.bind(line), scope.bind(k)
            found = [scope.bind(scope.load(*at)) for at in parts_at(arrays[0], line, k)]
            write(index(line, k), *found)
