"""Barriers stand where threads of a block would race, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from conftest import has_c_compiler

import backend_c
import hlo
from backend_c.cuda.barriers import BARRIER, Barriers
from backend_c.cuda.walks import every
from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Array,
    Assign,
    Expr,
    If,
    Load,
    Loop,
    Statement,
    Store,
    Variable,
)
from backend_c.ir.scope import apply
from hlo.types import F32, F64, PRED
from hlo_oracle.arguments import from_seed

LANE = Variable(INDEX, "i", 0, 63)
T = Array("t1", F32, 64, mutable=True, is_local=True)
R = Array("r0", F32, 64)
OTHER = ix.subtract(63, LANE)
FIRST = apply("compare-EQ", Apply("thread", (), INDEX), ix.constant(0), type=PRED)


def lanes(*body: Statement) -> Loop:
    return Loop(LANE, ix.constant(64), "lanes", body)


def copied(to: Array, offset: Expr, source: Array, place: Expr) -> Statement:
    return Store(to, offset, Load(source, place))


def placed(*body: Statement) -> list[Statement]:
    barriers = Barriers(frozenset({"t1", "r0"}), frozenset({"t1"}))
    return list(barriers.in_rows(body))


def where(statements: Sequence[Statement]) -> Iterator[int]:
    """The numbers of the barriers among all statements."""
    return (number for number, one in enumerate(every(statements)) if one is BARRIER)


def test_each_thread_reads_what_it_wrote() -> None:
    body = placed(lanes(copied(T, LANE, R, LANE)), lanes(copied(R, LANE, T, LANE)))
    assert not list(where(body))


def test_a_thread_reads_what_another_wrote() -> None:
    body = placed(lanes(copied(T, LANE, R, LANE)), lanes(copied(R, LANE, T, OTHER)))
    # One before the next row overwrites what others still read, one between.
    assert [index for index, one in enumerate(body) if one is BARRIER] == [0, 2]


def test_what_all_threads_read_is_written_before() -> None:
    one = Variable(F64, "m", mutable=True)
    body = placed(
        If(FIRST, (Store(T, ix.constant(0), ix.constant(1)),)),
        Assign(one, Load(T, ix.constant(0))),
    )
    assert [index for index, found in enumerate(body) if found is BARRIER] == [0, 2]


def test_the_next_turn_of_a_loop_writes_what_this_one_reads() -> None:
    turns = Loop(
        Variable(INDEX, "n", 0, 9),
        ix.constant(10),
        "serial",
        (lanes(copied(T, LANE, R, LANE)), lanes(copied(R, LANE, T, OTHER))),
    )
    (loop,) = placed(turns)
    assert isinstance(loop, Loop)
    assert [index for index, one in enumerate(loop.body) if one is BARRIER] == [0, 2]


def test_what_combines_sums_is_a_barrier() -> None:
    total = Variable(F64, "m", mutable=True)
    combined = Apply("block-add", (Variable(F64, "m_own", mutable=True),), F64)
    body = placed(
        lanes(copied(T, LANE, R, LANE)),
        Assign(total, apply("add", total, combined)),
        lanes(copied(R, LANE, T, OTHER)),
    )
    assert [index for index, one in enumerate(body) if one is BARRIER] == [0]


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_the_emulation_reports_a_barrier_that_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    module = hlo.parse("""
        HloModule m
        ENTRY main {
          x = f32[32] parameter(0)
          y = f32[32,64] parameter(1)
          ROOT r = f32[64] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
        }""")
    arguments = from_seed(module, 0)
    backend_c.emulate(module)(*arguments)
    monkeypatch.setattr("backend_c.cuda.barriers._conflict", lambda one, other: False)
    with pytest.raises(backend_c.EmulationError, match="t1, which thread .* without a barrier"):
        backend_c.emulate(module)(*arguments)
