"""Compile loops in two versions: for small operands of sine and cosine, and for all operands.

Sine and cosine have a short sequence for operands up to a bound, as most are, and a long one for
all. To select at each element would take both. So a block of elements is computed by the short one,
which also reduces the greatest magnitude of the operands, and again by the long one if that is
beyond the bound (loop versioning). Blocks are cut by the shape, so that results do not depend on
the number of threads.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Assign,
    Constant,
    Expr,
    If,
    Kernel,
    Let,
    Loop,
    Mutable,
    Statement,
    Variable,
    may_run_twice,
    parts,
)
from backend_c.ir.loop_rewriting import with_expressions, with_loops, with_operands
from backend_c.ir.settings import Numerics
from backend_c.ir.value_ranges import COMPUTED_IN_F32, SHORTER, operation_of
from hlo.types import F32, PRED, S32

_BLOCK = 1024  # elements: few blocks are computed twice, and they stay in the cache


def versioned(kernel: Kernel) -> Kernel:
    """Return a kernel of ``fast`` numerics with its loops in two versions, where that serves."""
    if kernel.numerics is not Numerics.FAST:
        return kernel
    return replace(kernel, body=_Versions().block(kernel.body))


class _Versions:
    """Rewrite the loops of one kernel; a counter makes new names unique."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def block(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        """Rewrite statements."""
        return with_loops(body, self._loop)

    def _loop(self, loop: Loop) -> Sequence[Statement]:
        operands = _operands(loop.body)
        if not operands or not _may_run_twice(loop):
            return (loop._replace(body=self.block(loop.body)),)
        extent = ix.value_of(loop.extent)
        assert extent is not None
        if extent <= _BLOCK:
            kind = loop.kind.removeprefix("parallel ")
            return self._two(loop._replace(kind=kind), operands)
        return (self._in_blocks(loop, extent, operands),)

    def _in_blocks(self, loop: Loop, extent: int, operands: Sequence[Expr]) -> Loop:
        """Strip-mine a loop into blocks of ``_BLOCK`` elements, each in two versions."""
        number = next(self._numbers)
        blocks = -(-extent // _BLOCK)
        block = Variable(INDEX, f"b{number}", 0, blocks - 1)
        lane = Variable(INDEX, f"l{number}", 0, _BLOCK - 1)
        start = ix.multiply(block, _BLOCK)
        inside = Let(loop.variable, ix.add(start, lane))
        rest = ix.subtract(ix.constant(extent), start)
        size: Expr = ix.constant(_BLOCK) if extent % _BLOCK == 0 else ix.clamp(0, rest, _BLOCK)
        part = Loop(lane, size, "lanes", (inside, *loop.body))
        kind = "parallel" if loop.kind == "parallel lanes" else "serial"
        return Loop(block, ix.constant(blocks), kind, tuple(self._two(part, operands)))

    def _two(self, loop: Loop, operands: Sequence[Expr]) -> Sequence[Statement]:
        """Return the short version of a loop, and an ``If`` with the long one after it."""
        most = Variable(S32, f"f{next(self._numbers)}", mutable=True)
        # The functions share one maximum, which must be within the range of each.
        bound = min(_bound(e.operation) for e in _functions(loop.body))
        # Encodings of magnitudes are ordered as the magnitudes are, with NaN the greatest.
        noted: list[Statement] = []
        for operand in operands:
            value = operand if operand.type is F32 else Apply("convert", (operand,), F32)
            size = Apply("bitcast", (Apply("abs", (value,), F32),), S32)  # NaN is beyond infinity
            noted.append(Assign(most, Apply("maximum", (most, size), S32)))
        near = tuple(map(_shortened, loop.body))
        last = int(np.float32(bound).view(np.int32))
        beyond = Apply("compare-GT", (most, Constant(S32, last)), PRED)
        return (
            Mutable(most, Constant(S32, 0)),
            loop._replace(body=(*near, *noted), sums=(most,), operator="max"),
            If(beyond, (loop,)),
        )


def _functions(body: Sequence[Statement]) -> Iterator[Apply]:
    """Yield the calls in statements of functions that have a short sequence for small operands."""
    for part in parts(body):
        if isinstance(part, Apply) and _is_versioned(part):
            yield part


def _is_versioned(value: Apply) -> bool:
    return value.operation in SHORTER and value.type in COMPUTED_IN_F32


def _operands(body: Sequence[Statement]) -> list[Expr]:
    """Return the distinct operands of the functions that have two versions."""
    return list(dict.fromkeys(function.operands[0] for function in _functions(body)))


def _bound(operation: str) -> float:
    return SHORTER[operation][-1].largest


def _may_run_twice(loop: Loop) -> bool:
    """Return whether a loop of lanes is idempotent: it loads nothing that it stores."""
    if loop.kind not in ("lanes", "parallel lanes") or loop.sums:
        return False
    return ix.value_of(loop.extent) is not None and may_run_twice(loop.body)


def _shortened(statement: Statement) -> Statement:
    """Replace functions in a statement by their sequences for small operands."""
    return with_expressions(statement, _short)


def _short(value: Expr) -> Expr:
    value = with_operands(value, _short)
    if not isinstance(value, Apply) or not _is_versioned(value):
        return value
    return value._replace(operation=operation_of(SHORTER[value.operation][-1]))
