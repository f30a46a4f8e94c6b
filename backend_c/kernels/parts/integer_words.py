"""Describe a product of matrices of small integers as one of words: two steps of k each.

Sums modulo 2**32 of products of s16 are what runtime/hlo_gemm_u32.h has instructions for, so the
result may have at most 32 bits, and the factors must be s16 or narrower.
"""

from __future__ import annotations

from dataclasses import replace

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Constant, Expr
from backend_c.ir.scope import apply
from backend_c.kernels.parts.contraction_loops import as_type, counted
from backend_c.kernels.parts.factors import Factors, Read
from hlo.types import PRED, U32, ElementType

_FEW = 4  # rows, columns or steps, for which plain loops take less time
_HALF = Constant(U32, 0xFFFF)
_SHIFT = Constant(U32, 1 << 16)


def has_words(
    factors: Factors, types: tuple[ElementType, ElementType], result: ElementType
) -> bool:
    """Return whether factors of these types fit the halves of words, sums their result, and pay."""
    fit = all(t.is_integer and (t.bits < 16 or t.name == "s16") for t in types)
    is_matrix = min(factors.m, factors.n, factors.k) > _FEW
    return fit and is_matrix and result.is_integer and result.bits <= 32


def word_factors(factors: Factors) -> Factors:
    """Return the factors as words."""
    lhs, rhs = (_words(read, factors.k) for read in (factors.lhs, factors.rhs))
    return replace(factors, k=-(-factors.k // 2), lhs=lhs, rhs=rhs)


def _words(read: Read, k: int) -> Read:
    """Return the reader of words: the step of an even k is the low half."""

    def word(b: Expr, line: Expr, step: Expr) -> tuple[Expr, tuple[Expr, ...]]:
        even = ix.multiply(step, 2)
        low = as_type(counted(*read(b, line, even)), U32)
        value, conditions = read(b, line, ix.clamp(0, ix.add(even, 1), k - 1))
        if k % 2:
            conditions = (*conditions, apply("compare-LT", even, ix.constant(k - 1), type=PRED))
        high = as_type(counted(value, conditions), U32)
        return apply("add", apply("and", low, _HALF), apply("multiply", high, _SHIFT)), ()

    return word
