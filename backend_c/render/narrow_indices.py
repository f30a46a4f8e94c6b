"""Compute a kernel's indices in 32 bits where interval arithmetic proves that none overflows.

A small processor takes two instructions or more for each operation on 64 bits, and so does a GPU.
Every part of every index expression must be in range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    INDEX,
    NARROW_INDEX,
    Address,
    Apply,
    Call,
    Constant,
    Expr,
    Kernel,
    Let,
    Load,
    LocalArray,
    Loop,
    Mutable,
    Pointer,
    Statement,
    Variable,
    every,
    parts,
    subexpressions,
)
from backend_c.ir.loop_rewriting import with_blocks, with_expressions, with_operands

_LIMIT = 2**31
_OF_LAUNCH = ("thread", "threads")  # numbers of a launch, which are small


def with_narrow_indices(kernel: Kernel, limit: int = _LIMIT) -> Kernel:
    """Return the kernel with 32-bit indices; unchanged if an index may reach ±``limit``."""
    if not all(_is_narrow(statement, limit) for statement in every(kernel.body)):
        return kernel
    return replace(kernel, body=_narrowed(kernel.body))


def as_narrow_index(index: Expr) -> Expr | None:
    """Return an index computed in 32 bits; None if a part of it may overflow."""
    return _narrow(index) if all(_fits(p, _LIMIT) for p in subexpressions(index)) else None


def _is_narrow(statement: Statement, limit: int) -> bool:
    """Return whether all indices that a statement itself computes fit 32 bits.

    Arrays of indices and mutable indices do not count: runtime functions take their addresses.
    """
    match statement:
        case LocalArray(array) if array.element_type is INDEX:
            return False
        case Mutable(variable, _) if variable.type is INDEX:
            return False
        case Call(_, arguments):
            arrays = [a.array for a in arguments if isinstance(a, Pointer)]
            if any(array.element_type is INDEX for array in arrays):
                return False
        case _:
            pass
    return all(_fits(part, limit) for part in parts([statement]))


def _fits(part: Expr, limit: int) -> bool:
    """Return whether the value of an expression fits 32 bits; its operands are not checked."""
    if part.type is not INDEX:
        return True
    if isinstance(part, (Load, Address)) or (isinstance(part, Variable) and part.mutable):
        return False
    if isinstance(part, Apply) and (part.operation in _OF_LAUNCH or _is_of_32_bits(part)):
        return True
    low, high = ix.bounds(part)
    return low >= -limit and high < limit


def _is_of_32_bits(part: Apply) -> bool:
    """Return whether an index is converted from an integer type that 32 bits hold."""
    if part.operation != "convert" or not part.operands[0].type.is_integer:
        return False
    source = part.operands[0].type
    return source.bits < 32 + (source.kind == "signed")


def _narrowed(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return statements with narrow indices."""
    return tuple(map(_narrowed_statement, body))


def _narrowed_statement(statement: Statement) -> Statement:
    statement = with_blocks(with_expressions(statement, _narrow), _narrowed)
    if isinstance(statement, Let | Loop) and statement.variable.type is INDEX:
        return statement._replace(variable=statement.variable._replace(type=NARROW_INDEX))
    return statement


def _narrow(expression: Expr) -> Expr:
    """Return an expression whose indices are narrow."""
    expression = with_operands(expression, _narrow)
    if expression.type is INDEX and isinstance(expression, Apply | Constant | Variable):
        return expression._replace(type=NARROW_INDEX)
    return expression
