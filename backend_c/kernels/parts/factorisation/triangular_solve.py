"""Reduce every triangular system to T x = b with a lower triangle T, solved forwards (fast mode).

x op(a) = b is op(a)^T x^T = b^T, and an upper triangle is a lower one from its other end.
"""

from __future__ import annotations

import math

from backend_c.ir import index as ix
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import Array, Expr
from backend_c.ir.scope import Scope
from backend_c.kernels.parts.contraction.factor_panels import Numbers, System, numbers_of
from backend_c.kernels.parts.factorisation.cholesky_and_substitution import conjugate


class TriangularSolve:
    """Hold a batch of systems T x = b, and the writer of their solutions."""

    def __init__(self, a: Element, b: Element, system: System, write: Writer, scope: Scope) -> None:
        self._a, self._b, self._system = a, b, system
        self._write, self._scope = write, scope
        self._batch, self._size, self._vectors = system.extents(b.shape.dims)
        self._count = math.prod(self._batch)
        self._numbers: Numbers = numbers_of(b.shape.element_type)
        self._sums = self._numbers.sums
        self._order = self._size * self._numbers.parts

    def _numbers_in_memory(self) -> Array | None:
        """Return the array of ``a``, if it holds real numbers of the type of the sums; else
        None."""
        array = self._a.array
        if array is None or array.memory is not None or array.element_type is not self._sums:
            return None
        return array

    def _entry(self, matrix: Expr, row: Expr, step: Expr) -> Expr:
        """Return T[row, step], from the element of ``a`` that it is."""
        at = [self._along(place) for place in (row, step)]
        if self._system.is_across:
            at.reverse()
        value = self._a.at(*ix.delinearize(matrix, self._batch), *at)
        return conjugate(value) if self._system.is_conjugate else value

    def _along(self, step: Expr) -> Expr:
        """Return the row (or column) of ``a`` for one of T: reversed if ``a`` is solved
        backwards."""
        return step if self._system.is_forward else ix.subtract(self._size - 1, step)
