"""Write an fft in fast mode as passes along its dimensions, one after the other."""

from __future__ import annotations

import math
from dataclasses import replace

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer, array_reader
from backend_c.ir.loop_ir import INDEX, Apply, Array, Constant, Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.fourier.block_fourier import BlockPass, block_factors
from backend_c.kernels.parts.fourier.fast_fourier import LanePass
from backend_c.kernels.parts.fourier.fourier_pass import Index, Pass, Target, Value
from backend_c.kernels.parts.fourier.fourier_plan import (
    axes_in_order,
    halves,
    has_plan,
    interleaved_roots,
)
from hlo.types import C64, C128, F64, PARTS, PRED, ArrayShape


def has_fast_transform(result: ArrayShape, fft_length: tuple[int, ...], scope: Scope) -> bool:
    """Return whether all transforms have plans: all but those of very large primes."""
    first = result.rank - len(fft_length)
    return all(
        all(map(has_plan, _split(result, first + d, length, scope) or (length,)))
        for d, length in enumerate(fft_length)
    )


def _split(shape: ArrayShape, axis: int, length: int, scope: Scope) -> tuple[int, int] | None:
    """Return the factors n1, n2 of a length that takes two passes; None if it takes one."""
    dims = shape.dims
    if nest.has_blocks(scope):
        part = PARTS.get(shape.element_type, shape.element_type)
        return block_factors(length, part, is_last=axis == len(dims) - 1)
    others = (*dims[:axis], *dims[axis + 1 :])
    # The lanes of either type: where they differ, a split costs little.
    along = math.prod(others) if axis == len(dims) - 1 else dims[-1]
    return halves(length, along, 16)


class FastTransform:
    """Write one fft in fast mode, in the type of its result."""

    def __init__(
        self,
        operand: Element,
        fft_type: str,
        fft_length: tuple[int, ...],
        write: Writer,
        scope: Scope,
    ) -> None:
        self._operand, self._write, self._scope = operand, write, scope
        self._type, self._length = fft_type, fft_length
        self._is_inverse = fft_type in ("IFFT", "IRFFT")
        result = write.shapes[0].element_type
        self._part = PARTS.get(result, result)
        self._complex = C128 if self._part is F64 else C64
        self._axes = axes_in_order(fft_type, fft_length, operand.shape.rank)

    def emit(self) -> None:
        """Write all passes; all but the last leave complex numbers in workspace.

        Workspace has the operand's dims (RFFT: the result's).
        """
        result = self._write.shapes[0].dims
        between = result if self._type == "RFFT" else self._operand.shape.dims
        *axes, last = self._axes
        source = self._operand
        for axis in axes:
            target = self._between(between)
            self._pass(source, axis, target)
            source = self._reader(target)
        final = Target(self._write.arrays[0], result, self._final)
        self._pass(source, last, final, is_half=self._type == "IRFFT")

    def _between(self, dims: tuple[int, ...]) -> Target:
        """Return workspace for complex numbers of some dims, as the target of a pass."""

        def value(real: Expr, imag: Expr, index: Index) -> Expr:
            return apply("complex", real, imag, type=self._complex)

        return Target(self._scope.scratch(self._complex, math.prod(dims)), dims, value)

    def _reader(self, target: Target) -> Element:
        """Return the reader of a pass's results in workspace."""
        return array_reader(target.array, ArrayShape(self._complex, target.dims))

    def _final(self, real: Expr, imag: Expr, index: Index) -> Expr:
        """Return an element of the result: scaled for inverse transforms, real if the result is."""
        parts = [real, imag]
        if self._is_inverse:
            scale = Constant(self._part, 1.0 / math.prod(self._length))
            parts = [apply("multiply", part, scale) for part in parts]
        element_type = self._write.shapes[0].element_type
        return apply("complex", *parts, type=element_type) if element_type.is_complex else parts[0]

    def _pass(self, source: Element, axis: int, target: Target, *, is_half: bool = False) -> None:
        """Write the transforms along an axis, in one pass or two."""
        length = self._length[axis - len(target.dims)]
        signal = self._signal(source, axis, target)
        factors = _split(ArrayShape(self._part, target.dims), axis, length, self._scope)
        if signal is not None and nest.has_blocks(self._scope) and factors is not None:
            # A signal is half as many complex numbers, which a block may take in one pass though it
            # cannot take ``length`` of them.
            factors = factors if block_factors(length // 2, self._part, is_last=True) else None
        if factors is None and signal is not None:
            source, target = signal
            part, is_inverse = self._part, self._is_inverse
            self._write_pass(
                Pass(self._scope, part, source, axis, length // 2, target, is_inverse,
                     has_signal=True)
            )  # fmt: skip
            return
        if factors is None:
            self._emit(source, axis, length, target, is_half=is_half)
            return
        whole = (*target.dims[:axis], length, *target.dims[axis + 1 :])
        if is_half:
            source = self._mirrored(source, whole)
        if target.dims == whole:
            self._in_two(source, axis, factors, target)
            return
        full = self._between(whole)
        self._in_two(source, axis, factors, full)
        kept = self._reader(full)
        with nest.split(self._scope, target.dims, 2) as index:
            value = self._scope.bind(kept.at(*index))
            real, imag = (apply(name, value, type=self._part) for name in ("real", "imag"))
            offset = ix.linearize(index, target.dims)
            self._scope.store(target.array, offset, target.value(real, imag, index))

    def _signal(self, source: Element, axis: int, target: Target) -> tuple[Element, Target] | None:
        """Return (source, target) with real signals of even length viewed as half as many complex
        numbers.

        None if the transform has no real signal, or if it is not in memory.
        """
        length = self._length[axis - len(target.dims)]
        array = target.array if self._type == "IRFFT" else source.array
        is_last = axis == len(target.dims) - 1 and self._type in ("RFFT", "IRFFT")
        if not is_last or length % 2 or array is None or array.element_type is not self._part:
            return None
        if source.array is None or array.memory is not None:
            return None
        view = Array(array.name, self._complex, array.elements // 2, memory=self._part)
        if self._type == "RFFT":
            dims = (*source.shape.dims[:-1], length // 2)
            return array_reader(view, ArrayShape(self._complex, dims)), target

        def value(real: Expr, imag: Expr, index: Index) -> Expr:
            scale = Constant(self._part, 1.0 / math.prod(self._length))
            parts = (apply("multiply", part, scale) for part in (real, imag))
            return apply("complex", *parts, type=self._complex)

        return source, Target(view, (*target.dims[:-1], length // 2), value)

    def _emit(
        self, source: Element, axis: int, length: int, target: Target, *, is_half: bool = False
    ) -> None:
        """Write one pass over complex numbers."""
        scope, part = self._scope, self._part
        self._write_pass(Pass(scope, part, source, axis, length, target, self._is_inverse, is_half))

    def _write_pass(self, one: Pass) -> None:
        """Write a pass in lanes, or by blocks of threads, as the target has them."""
        (BlockPass if nest.has_blocks(self._scope) else LanePass)(one).emit()

    def _mirrored(self, source: Element, dims: tuple[int, ...]) -> Element:
        """Return a reader of a whole spectrum, mirrored from its first half.

        It is written to workspace first where lanes read it by rows.
        """
        scope, length = self._scope, dims[-1]

        def at(*index: Expr) -> Expr:
            *row, k = index
            place = ix.clamp(0, k, length // 2)
            is_mirrored = apply("compare-LT", ix.constant(length // 2), k, type=PRED)
            other = ix.clamp(0, ix.subtract(length, k), length // 2)
            own = scope.bind(apply("select", is_mirrored, other, place, type=INDEX))
            value = scope.bind(source.at(*row, own))
            real, imag = (apply(name, value, type=self._part) for name in ("real", "imag"))
            turned = apply("select", is_mirrored, apply("negate", imag), imag, type=imag.type)
            zero = Constant(self._part, 0.0)
            ends = [0, length // 2] if length % 2 == 0 else [0]
            for end in ends:
                is_end = apply("compare-EQ", k, ix.constant(end), type=PRED)
                turned = apply("select", is_end, zero, turned, type=imag.type)
            return apply("complex", real, turned, type=self._complex)

        if nest.has_blocks(scope):
            return Element(ArrayShape(self._complex, dims), at)
        full = self._between(dims)
        with nest.outer(scope, dims[:-1], 4 * length) as row, scope.loop(length) as k:
            scope.store(full.array, ix.linearize((*row, k), dims), at(*row, k))
        return self._reader(full)

    def _in_two(self, source: Element, axis: int, factors: tuple[int, int], target: Target) -> None:
        """Write a pass of length n1 n2 as two: X[k1 + n1 k2] is the transform over j2 of
        w^(k1 j2) times that of x[j1 n2 + j2] over j1.
        """
        first, second = factors
        dims = (*target.dims[:axis], first, second, *target.dims[axis + 1 :])

        def at(*index: Expr) -> Expr:
            place = ix.add(ix.multiply(index[axis], second), index[axis + 1])
            return source.at(*index[:axis], place, *index[axis + 2 :])

        split = Element(ArrayShape(source.shape.element_type, dims), at)
        if source.array is not None:
            split = array_reader(source.array, split.shape)
        turned = self._between(dims)
        roots = self._scope.table(interleaved_roots(first * second).astype(self._part.numpy))
        turned = replace(turned, value=self._turning(axis, roots))
        self._emit(split, axis, first, turned)

        def value(real: Expr, imag: Expr, index: Index) -> Expr:
            k1, k2 = index[axis : axis + 2]
            place = ix.add(k1, ix.multiply(k2, first))
            return target.value(real, imag, (*index[:axis], place, *index[axis + 2 :]))

        final = Target(target.array, dims, value, exchanged=axis)
        self._emit(self._reader(turned), axis + 1, second, final)

    def _turning(self, axis: int, roots: Array) -> Value:
        """Return the twiddle factors' product: times w^(k1 j2), its conjugate for the inverse."""
        scope = self._scope

        def value(real: Expr, imag: Expr, index: Index) -> Expr:
            power = scope.bind(Apply("multiply", (index[axis], index[axis + 1]), INDEX))
            c = scope.bind(scope.load(roots, ix.multiply(power, 2)))
            d = scope.bind(scope.load(roots, ix.add(ix.multiply(power, 2), 1)))
            if self._is_inverse:
                d = apply("negate", d)
            turned_real = apply("subtract", apply("multiply", real, c), apply("multiply", imag, d))
            turned_imag = apply("add", apply("multiply", real, d), apply("multiply", imag, c))
            return apply("complex", turned_real, turned_imag, type=self._complex)

        return value
