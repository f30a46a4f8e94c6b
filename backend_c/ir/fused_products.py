"""Contract products into the sums that read them: a b + c with one rounding, in ``fast`` numerics.

Half of the instructions of a polynomial, where the processor multiplies and adds at once (elsewhere
the C is two operations again). Only products that nothing else reads: others are computed anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeGuard

from backend_c.ir.dead_lets import without_dead_lets
from backend_c.ir.loop_ir import (
    Apply,
    Expr,
    Let,
    Statement,
    Variable,
    every,
    is_mutable,
    parts,
    subexpressions,
)
from backend_c.ir.loop_rewriting import with_blocks, with_expressions, with_operands
from hlo.opcodes import SUM, having
from hlo.types import F32, F64

_SUMS = having(SUM)


def with_fused_products(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Replace sums and differences of products in f32 and f64 by multiply-add operations."""
    uses = Counter(part.name for part in parts(every(body)) if isinstance(part, Variable))
    fused = _Fusing(uses)
    found = fused.block(body)
    return without_dead_lets(found) if fused.is_changed else tuple(body)


class _Fusing:
    """Fuse products in one kernel, whose variables are each bound once."""

    def __init__(self, uses: Counter[str]) -> None:
        self._uses = uses
        self._products: dict[str, Apply] = {}  # of the block that is being rewritten, by variable
        self.is_changed = False

    def block(self, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        """Fuse in statements. A product before a loop is not moved into it."""
        outside, self._products = self._products, {}
        rewritten = tuple(map(self._statement, statements))
        self._products = outside
        return rewritten

    def _statement(self, statement: Statement) -> Statement:
        statement = with_expressions(statement, self._fused)
        if isinstance(statement, Let):
            variable, value = statement
            # One that reads what may change is computed where it is.
            is_fixed = not any(map(is_mutable, subexpressions(value)))
            if _is_product(value) and is_fixed and self._uses[variable.name] == 1:
                self._products[variable.name] = value
        return with_blocks(statement, self.block)

    def _fused(self, value: Expr) -> Expr:
        """Return an expression whose sums of products are fused."""
        value = with_operands(value, self._fused)
        if not isinstance(value, Apply) or value.operation not in _SUMS:
            return value
        if value.type not in (F32, F64):
            return value
        (left, right), is_sum = value.operands, value.operation == "add"
        product = self._product(left)
        if product is not None:
            one, other = product.operands
            return self._multiply_add(one, other, right if is_sum else _negated(right))
        product = self._product(right)
        if product is None:
            return value
        one, other = product.operands
        return self._multiply_add(one if is_sum else _negated(one), other, left)

    def _multiply_add(self, one: Expr, other: Expr, rest: Expr) -> Apply:
        self.is_changed = True
        return Apply("multiply-add", (one, other, rest), rest.type)

    def _product(self, value: Expr) -> Apply | None:
        """Return the product that an expression is, None if it is none."""
        if isinstance(value, Variable):
            return self._products.get(value.name)
        return value if _is_product(value) else None


def _is_product(value: Expr) -> TypeGuard[Apply]:
    return isinstance(value, Apply) and value.operation == "multiply" and value.type in (F32, F64)


def _negated(value: Expr) -> Apply:
    return Apply("negate", (value,), value.type)
