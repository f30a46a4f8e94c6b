"""Loops around maps: which dimensions get one of their own."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import Array, Expr, Loop, every, expressions, subexpressions
from backend_c.ir.scope import Scope
from backend_c.ir.settings import Numerics, Settings, alone, launched, threaded
from hlo.types import F32

_DIVISIONS = ("divide", "modulo")


def _written(dims: tuple[int, ...], settings: Settings) -> tuple[list[int | None], set[str]]:
    """Write a map that exchanges the first two dimensions; return the extents of its loops, and
    which divisions its indices take."""
    scope = Scope(settings, is_flat=False)
    source = Array("a0", F32, math.prod(dims))
    target = Array("r0", F32, math.prod(dims), mutable=True)

    def write(index: tuple[Expr, ...]) -> None:
        exchanged = (index[1], index[0], *index[2:]), (dims[1], dims[0], *dims[2:])
        value = scope.bind(scope.load(source, ix.linearize(*exchanged)))
        scope.store(target, ix.linearize(index, dims), value)

    nest.write_map(scope, dims, 1, write)
    body = tuple(every(scope.statements))
    parts = (p for s in body for e in expressions(s) for p in subexpressions(e))
    operations = {getattr(part, "operation", "") for part in parts}
    return (
        [ix.value_of(s.extent) for s in body if isinstance(s, Loop)],
        operations.intersection(_DIVISIONS),
    )


def test_short_rows_have_a_loop_inside_of_that_over_threads() -> None:
    assert _written((256, 200, 3), threaded(Numerics.FAST)) == ([256, 200, 3], set())


@pytest.mark.parametrize("settings", [alone, launched])
def test_other_targets_have_one_loop_over_rows(settings: Callable[[Numerics], Settings]) -> None:
    assert _written((256, 200, 3), settings(Numerics.FAST)) == ([51200, 3], {*_DIVISIONS})


@pytest.mark.parametrize("dims", [(256, 200, 100), (2, 200000, 3), (1, 5000, 3), (1, 300), (1, 1)])
def test_others_have_one_loop_over_rows(dims: tuple[int, ...]) -> None:
    """Long rows, those of which threads would share too few iterations, and a single dimension."""
    extents, _ = _written(dims, threaded(Numerics.FAST))
    assert len(extents) <= 2
