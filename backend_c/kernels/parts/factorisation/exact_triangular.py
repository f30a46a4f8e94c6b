"""Write exact solutions of triangular systems: substitution for each right-hand side."""

from __future__ import annotations

import math

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import Array, Constant, Expr, Pointer
from backend_c.ir.scope import Scope
from backend_c.kernels.parts.contraction.factor_panels import System
from backend_c.kernels.parts.factorisation import block_substitution
from backend_c.kernels.parts.factorisation.cholesky_and_substitution import (
    ROUTINES,
    conjugate,
    in_memory,
    substitute,
)
from hlo.types import S32


def exact_triangular_solve(
    a: Element, b: Element, system: System, write: Writer, scope: Scope
) -> None:
    """Write the solutions of a batch of systems, each in the place of its right-hand side."""
    array = in_memory(a, scope)
    with nest.flat(scope, b.shape.dims) as index:
        write(index, (b.at(*index),))
    _Substitution(array, b, system, write.arrays[0], scope).emit()


class _Substitution:
    """Write forward substitutions in place, in ``solution``."""

    def __init__(
        self, array: Array, b: Element, system: System, solution: Array, scope: Scope
    ) -> None:
        self._array, self._system = array, system
        self._solution, self._scope = solution, scope
        batch, self._size, vectors = system.extents(b.shape.dims)
        rows, columns = b.shape.dims[-2:]
        self._dims, self._area = (math.prod(batch), vectors), rows * columns
        self._step, self._between = (columns, 1) if system.left_side else (1, columns)

    def emit(self) -> None:
        """Write the solutions for all right-hand sides."""
        scope, size, element_type = self._scope, self._size, self._array.element_type
        vectors = math.prod(self._dims)
        if block_substitution.has_blocks(element_type, size, vectors, scope):
            block_substitution.substitute_in_blocks(
                scope, element_type, size, self._dims, self._given
            )
            return
        with nest.outer(scope, self._dims, size * size) as (matrix, vector):
            if element_type in ROUTINES:
                scope.call(f"hlo_substitute_{element_type}", *self._given(matrix, vector))
            else:
                self._written_out(matrix, vector)

    def _starts(self, matrix: Expr, vector: Expr) -> tuple[Expr, Expr]:
        """Return the offsets of a matrix and of a right-hand side."""
        before = ix.multiply(vector, self._between)
        start = ix.add(ix.multiply(matrix, self._area), before)
        return ix.multiply(matrix, self._size * self._size), start

    def _given(self, matrix: Expr, vector: Expr) -> tuple[Expr | Pointer, ...]:
        """Return the arguments of the runtime's substitution routine."""
        corner, start = self._starts(matrix, vector)
        # x op(a) = b is op(a)^T x^T = b^T, and a transposed lower triangle is an upper one: a
        # transposition and a side that cancel, or do not.
        strides = (1, self._size) if self._system.is_across else (self._size, 1)
        flags = self._system.is_forward, self._system.unit
        return (
            Pointer(self._array, corner),
            *map(ix.constant, (*strides, self._size)),
            *(Constant(S32, int(flag)) for flag in flags),
            Pointer(self._solution, start),
            ix.constant(self._step),
        )

    def _written_out(self, matrix: Expr, vector: Expr) -> None:
        """Write a substitution in loop IR, for types without a runtime routine."""
        scope, size, system = self._scope, self._size, self._system
        corner, start = self._starts(matrix, vector)

        def along(i: Expr) -> Expr:
            return i if system.is_forward else ix.subtract(size - 1, i)

        def entry(row: Expr, column: Expr) -> Expr:
            at = [along(row), along(column)]
            if system.is_across:
                at.reverse()
            value = scope.load(self._array, ix.add(corner, ix.linearize(at, (size, size))))
            return conjugate(value) if system.is_conjugate else value

        def place(i: Expr) -> Expr:
            return ix.add(start, ix.multiply(along(i), self._step))

        substitute(entry, self._solution, place, size, scope, unit=system.unit)
