"""Describe a product of complex matrices as one of real matrices.

Steps of k become two, of the real and of the imaginary parts of the left factor; so do columns:

    (a + bi) (c + di):   [a b] [ c d]
                               [-d c]

so that the real and the imaginary part of a result lie side by side. That is four real products,
each component a plain sum of them.
"""

from __future__ import annotations

from dataclasses import replace

from backend_c.ir import index as ix
from backend_c.ir.element import zero
from backend_c.ir.loop_ir import Expr
from backend_c.ir.scope import apply
from backend_c.kernels.parts.contraction.factors import Factors
from hlo.types import F32, PARTS, PRED, ElementType


def real_factors(factors: Factors, result: ElementType) -> Factors:
    """Return the factors of the real product; for a real result, the columns of real parts
    alone."""
    columns = 2 if result.is_complex else 1

    def lhs(b: Expr, m: Expr, step: Expr) -> tuple[Expr, tuple[Expr, ...]]:
        value, conditions = factors.lhs(b, m, ix.divide(step, 2))
        real, imag = _parts(value)
        return _select(_is_even(step), real, imag), conditions

    def rhs(b: Expr, column: Expr, step: Expr) -> tuple[Expr, tuple[Expr, ...]]:
        value, conditions = factors.rhs(b, ix.divide(column, columns), ix.divide(step, 2))
        real, imag = _parts(value)
        first = _select(_is_even(step), real, apply("negate", imag))
        if columns == 1:
            return first, conditions
        second = _select(_is_even(step), imag, real)
        return _select(_is_even(column), first, second), conditions

    def place(b: Expr, m: Expr, column: Expr) -> tuple[Expr, ...]:
        return factors.place(b, m, ix.divide(column, columns))

    # `k_dims` and `patches` are dropped: they count complex steps.
    n, k = columns * factors.n, 2 * factors.k
    return replace(factors, n=n, k=k, lhs=lhs, rhs=rhs, place=place, k_dims=(), patches=None)


def _parts(value: Expr) -> tuple[Expr, Expr]:
    """Return the real and the imaginary part of a factor; zero for the latter if it is real."""
    if not value.type.is_complex:
        # Not each narrow type has a zero.
        if value.type.is_float and value.type.bits < F32.bits:
            value = apply("convert", value, type=F32)
        return value, zero(value.type)
    part = PARTS[value.type]
    return apply("real", value, type=part), apply("imag", value, type=part)


def _is_even(index: Expr) -> Expr:
    """Return whether an index is even."""
    return apply("compare-EQ", ix.modulo(index, 2), ix.constant(0), type=PRED)


def _select(condition: Expr, lhs: Expr, rhs: Expr) -> Expr:
    """Build a select between two values."""
    return apply("select", condition, lhs, rhs, type=lhs.type)
