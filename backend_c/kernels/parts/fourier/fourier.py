"""Write Fourier transforms along one dimension, in f64 (runtime/hlo_fft.h).

Every column of the array along the dimension is transformed; a few of them at a time lie side by
side in workspace, where they are the lanes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Array, Constant, Expr, Pointer
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.fourier.real_fourier import is_real
from hlo.elementary import roots_of_unity
from hlo.types import F64, PRED, S32

_LANES = 8
_Index = tuple[Expr, ...]
# Maps an index to the real and the imaginary part, in f64.
Read = Callable[[_Index], tuple[Expr, Expr]]
Emit = Callable[[_Index, Expr, Expr], None]


class Columns:
    """Write transforms of length ``length`` along ``axis`` of arrays, a few columns in lanes.

    ``dims`` are those of the array, whose extent along ``axis`` is that of the result.
    """

    def __init__(
        self, scope: Scope, dims: Sequence[int], axis: int, length: int, is_inverse: bool
    ) -> None:
        self._scope, self._axis, self._length = scope, axis, length
        self._others = (*dims[:axis], *dims[axis + 1 :])
        self._places = dims[axis]
        self._inverse = Constant(S32, int(is_inverse))
        columns = math.prod(self._others)
        self._width = min(columns, _LANES)
        self._columns, self._blocks = columns, -(-columns // self._width)

    def emit(self, read: Read, write: Emit, *, is_half: bool) -> None:
        """Write the transforms; ``is_half``: the input is half the spectrum of a real signal."""
        scope, width = self._scope, self._width
        size = 2 * self._length * width
        values, spare = (scope.scratch(F64, size * self._blocks) for _ in range(2))
        tables = [scope.table(table) for table in roots_of_unity(self._length)]
        with nest.outer(scope, (self._blocks,), 16 * size) as (block,):
            start = ix.multiply(block, size)
            first = ix.multiply(block, width)
            if is_half:
                self._read_half(values, start, first, read)
            else:
                self._read(values, start, first, read)
            scope.call(
                "hlo_fft",
                *(Pointer(array, start) for array in (values, spare)),
                *(Pointer(table, ix.constant(0)) for table in tables),
                ix.constant(self._length),
                ix.constant(width),
                self._inverse,
            )
            count = ix.clamp(0, ix.subtract(self._columns, first), width)
            with scope.loop(self._places) as k, scope.loop(count) as lane:
                place = self._place(start, k, lane)
                real = scope.bind(scope.load(values, place))
                imag = scope.bind(scope.load(values, ix.add(place, 1)))
                write(self._index(ix.add(first, lane), k), real, imag)

    def _place(self, start: Expr, k: Expr, lane: Expr) -> Expr:
        """Return the offset of an element in workspace: [k][lane] interleaved complex numbers."""
        return ix.add(start, ix.multiply(k, 2 * self._width), ix.multiply(lane, 2))

    def _index(self, column: Expr, k: Expr) -> _Index:
        """Return the array's index of element k of a column."""
        other = [self._scope.bind(i) for i in ix.delinearize(column, self._others)]
        return (*other[: self._axis], k, *other[self._axis :])

    def _of_lane(self, first: Expr, lane: Expr, k: Expr) -> _Index:
        """Return the array's index of element k of a lane; excess lanes read the last column."""
        return self._index(ix.clamp(0, ix.add(first, lane), self._columns - 1), k)

    def _put(self, values: Array, place: Expr, real: Expr, imag: Expr) -> None:
        """Store a complex number in workspace."""
        self._scope.store(values, place, real)
        self._scope.store(values, ix.add(place, 1), imag)

    def _read(self, values: Array, start: Expr, first: Expr, read: Read) -> None:
        """Write the loads of whole columns into workspace."""
        scope = self._scope
        with scope.loop(self._length) as k, scope.loop(self._width) as lane:
            real, imag = read(self._of_lane(first, lane, k))
            self._put(values, self._place(start, k, lane), real, imag)

    def _read_half(self, values: Array, start: Expr, first: Expr, read: Read) -> None:
        """Write the loads of half spectra into workspace, mirrored: X[n - k] = conj(X[k]).

        The constant and, for even lengths, the middle coefficient count as real.
        """
        scope, length = self._scope, self._length
        with scope.loop(length // 2 + 1) as k, scope.loop(self._width) as lane:
            real, imag = map(scope.bind, read(self._of_lane(first, lane, k)))
            is_end = is_real(length, k)
            zero = Constant(F64, 0.0)
            own = apply("select", is_end, zero, imag, type=F64)
            self._put(values, self._place(start, k, lane), real, own)
            with scope.when(apply("not", is_end, type=PRED)):
                mirrored = self._place(start, ix.subtract(length, k), lane)
                self._put(values, mirrored, real, apply("negate", imag))
