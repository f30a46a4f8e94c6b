"""Barriers stand where threads of a block would race, and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from conftest import has_c_compiler

from backend_c.cuda import phases
from backend_c.cuda.barriers import BARRIER, Barriers
from backend_c.cuda.host_plan import host_plan
from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Array,
    Assign,
    Expr,
    If,
    Kernel,
    Load,
    LocalArray,
    Loop,
    Statement,
    Store,
    Variable,
    every,
)
from backend_c.ir.scope import apply
from backend_c.lower.plan import Launch, Plan
from backend_c.native.cache import default_directory, open_cache
from backend_c.native.cuda_emulation import (
    Emulated,
    EmulatedLibrary,
    Schedule,
    build_driver,
    build_emulated,
)
from backend_c.native.emulation_findings import EmulationError
from backend_c.native.toolchain import known_compiler
from backend_c.render.dialect import CUDA
from backend_c.render.translation_units import render_plan
from hlo.types import F32, F64, PRED, ArrayShape

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


def reversed_rows() -> Plan:
    """Reverse each of 5 rows, by way of an array that the threads of a block share."""
    plan = Plan()
    given, result = (plan.buffer(ArrayShape(F32, (5, 64))) for _ in range(2))
    row = Variable(INDEX, "n", 0, 4)
    place = ix.add(ix.multiply(row, 64), LANE)
    source, target = Array("a0", F32, 320), Array("r0", F32, 320)
    body = (
        LocalArray(T),
        lanes(copied(T, LANE, source, place)),
        lanes(copied(target, place, T, OTHER)),
    )
    rows = Loop(row, ix.constant(5), "parallel", body)
    plan.kernels.append(Kernel((source,), (target,), (), (rows,)))
    step = Launch(0, (given,), (result,), ())
    return replace(plan, steps=(step,), arguments=[given], results=[result])


def emulated(plan: Plan) -> Emulated:
    plan = phases.split(plan)
    program = render_plan(plan, CUDA)
    cache = open_cache(default_directory(os.environ))
    compiler = known_compiler(os.environ, cache)
    path = build_emulated(program.sources, compiler, cache)
    library = EmulatedLibrary(path, build_driver(compiler, cache))
    shape = plan.arguments[0].shape
    return Emulated(library, host_plan(plan, program), [("x", shape)], shape, program.sources)


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_the_emulation_reports_a_barrier_that_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(320, dtype=np.float32).reshape(5, 64)
    for threads in (1, 32, 33, 128):
        found = emulated(reversed_rows())(x, schedule=Schedule(threads, blocks=2))
        assert np.array_equal(found, x[:, ::-1]), threads
    monkeypatch.setattr("backend_c.cuda.barriers._conflict", lambda one, other: False)
    with pytest.raises(EmulationError, match=r"shared t1, which thread \d+ .* without a barrier"):
        emulated(reversed_rows())(x)
