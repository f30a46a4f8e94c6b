"""Failures of a compiler, here of the interpreter with a planted bug, and what they are held to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from planted import answering

import fuzz
import hlo
from fuzz.judge.failure import CRASH, HANG, WRONG, Against, Judged
from fuzz.peers.xla import Answer
from fuzz.reducer.reduction import exact
from fuzz.report import Report, write
from hlo.errors import Unsupported
from interp.envelope.budget import XLA_CPU
from interp.envelope.recorded_values import exposed

WIDE = """HloModule wide
ENTRY main {
  x = f32[8] parameter(0)
  many = f32[8] exponential(x)
  any = f32[8] sine(many)
  more = f32[8] exponential(any)
  whole = f32[8] floor(more)
  ROOT r = f32[8] add(whole, any)
}
"""
X = np.linspace(15, 16, 8, dtype=np.float32)


def compiler(name: str) -> Against:
    """Judge a peer with a bug in one op: positive results are greater by a half."""
    run = answering(name, lambda x: np.where(x > 0, x + np.float32(0.5), x))
    return Against(run, XLA_CPU)


def test_a_step_that_is_wrong_becomes_a_program(tmp_path: Path) -> None:
    """The result alone says nothing: sines of great numbers are anything."""
    against, module = compiler("floor"), hlo.parse(WIDE)
    failure = against.failure(module, (X,))
    assert failure is not None and failure.kind == WRONG and failure.found is not None
    assert [step.instruction.opcode for step in failure.found.wrong] == ["floor"]
    kept = against.keeps(failure, module, (X,))
    assert kept.opcode == "floor"
    small, arrays = fuzz.reduce(module, (X,), kept, values=(exact, against.values), taken=kept.take)
    assert [i.opcode for i in small.entry.instructions] == ["parameter", "floor"]
    assert kept.failure.found is not None and not kept.failure.found.wrong
    judged = Judged(kept.failure, XLA_CPU)
    write(Report(small, arrays, judged, WIDE.encode(), (X,)), tmp_path / "found")
    assert (
        "| 1.5 (0x3fc00000) | 1.0 (0x3f800000) | 1.0 only |"
        in (tmp_path / "found" / "issue.md").read_text()
    )


def test_nothing_is_learnt_from_a_compiler_that_answers_with_other_arrays() -> None:
    """A wrapper that always gives one array is wrong; its values of steps are not taken."""
    module = hlo.parse(WIDE)
    against = Against(lambda text, arrays: Answer((X,)), XLA_CPU)
    assert against.culprit(module, (X,)) is None
    assert against.values(exposed(module, ("many", "any")), (X,)) is None
    assert against.values(exposed(module, ()), (X,)) is not None


def test_nothing_is_wrong_and_a_refusal_is_nothing_wrong() -> None:
    assert compiler("cosine").failure(hlo.parse(WIDE), (X,)) is None
    refusing = Against(lambda text, arrays: Answer(error="no such op"), XLA_CPU)
    assert refusing.failure(hlo.parse(WIDE), (X,)) is None and refusing.refusal == "no such op"


@pytest.mark.parametrize(
    ("crash", "kind", "signs"),
    [
        ("SIGABRT: F1121 12:00:00.1 77 simplifier.cc:586] failed", CRASH, {"simplifier.cc:586]"}),
        ("SIGABRT: F1121 12:00:00.1 77 a.h:84] no in xla::f(Op)", CRASH, {"a.h in xla::f"}),
        ("SIGFPE in mlir::Folder::fold(AddOp)", CRASH, {"mlir::Folder::fold(AddOp)"}),
        ("SIGSEGV", CRASH, {"SIGSEGV"}),
        ("no answer in 60 s", HANG, {HANG}),
    ],
)
def test_how_a_process_ended(crash: str, kind: str, signs: set[str]) -> None:
    failure = Against(lambda text, arrays: Answer(crash=crash), XLA_CPU).failure(
        hlo.parse(WIDE), (X,)
    )
    assert failure is not None and (failure.kind, failure.signs) == (kind, signs)
    assert failure.is_like(failure) and not failure.is_like(None)


def test_what_the_interpreter_cannot_do_may_still_crash() -> None:
    module = hlo.parse(
        'HloModule m\nENTRY e { ROOT r = f32[] custom-call(), custom_call_target="none" }'
    )
    crashing = Against(lambda text, arrays: Answer(crash="SIGSEGV"), XLA_CPU)
    found = crashing.failure(module, ())
    assert found is not None and found.kind == CRASH
    answering = Against(lambda text, arrays: Answer((np.zeros((), np.float32),)), XLA_CPU)
    with pytest.raises(Unsupported):
        answering.failure(module, ())
