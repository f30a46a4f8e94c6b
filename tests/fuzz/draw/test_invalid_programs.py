"""Instructions that mean nothing, and what a compiler makes of them."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

import hlo
from fuzz.campaign.plan import Plan, cases
from fuzz.draw.invalid_programs import (
    _fewer_operands,
    _more_operands,
    _without_attribute,
    mutants,
)
from fuzz.oracles import ORACLES, Difference, Outcome, acceptance
from fuzz.oracles.known_differences import UNREAD
from fuzz.peers.xla import Answer
from fuzz.reducer.search import Case
from hlo.errors import VerifyError
from hlo.module import Module

_PROGRAM = """HloModule m
ENTRY e {
  x = f32[4,3] parameter(0)
  t = f32[3,4] transpose(x), dimensions={1,0}
  ROOT r = f32[6,2] reshape(t)
}
"""
_CASE = Case(hlo.parse(_PROGRAM), (np.zeros((4, 3), np.float32),))


def _texts(module: Module) -> list[str]:
    return [mutant.text for mutant in mutants(module)]


def test_mutants_break_constraints() -> None:
    drawn = [case for n in range(5) for case in cases(Plan(5, ("xla-accepts",), 8), n)]
    broken = set()
    for case in drawn:
        for mutant in mutants(case.module):
            with pytest.raises(VerifyError, match=mutant.label):
                hlo.verify(hlo.parse(mutant.text))
            assert mutant.message
            broken.add((mutant.opcode, mutant.label))
        assert _texts(case.module) == _texts(case.module)
    assert len(broken) > 15


def test_an_instruction_has_its_mutant_in_any_program() -> None:
    both = _texts(_CASE.module)
    smaller = _PROGRAM.replace("  ROOT r = f32[6,2] reshape(t)\n", "").replace("  t", "  ROOT t")
    (alone,) = _texts(hlo.parse(smaller))
    assert alone in both and len(both) == 2


def test_changes_of_the_root_leave_called_computations_as_they_are() -> None:
    text = """HloModule m

c {
  x = f32[4,4] parameter(0)
  ROOT r = f32[4,4] transpose(x), dimensions={1,0}
}

ENTRY e {
  x = f32[4,4] parameter(0)
  y = f32[4,4] call(x), to_apply=c
  ROOT r = f32[4,4] transpose(y), dimensions={1,0}
}
"""
    before, entry = text.split("ENTRY")
    for change in (_without_attribute, _fewer_operands, _more_operands):
        changed, other = change(text, random.Random(0)).split("ENTRY")
        assert changed == before and other != entry


class _Peer:
    """A compiler that makes the same of every program that is not valid."""

    def __init__(self, answer: Answer, own: Answer | None = None) -> None:
        self._answer, self._own = answer, own or Answer(optimised="")

    def __enter__(self) -> _Peer:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""

    def optimised(self, text: str) -> Answer:
        assert text == hlo.format(_CASE.module)
        return self._own

    def __call__(self, text: str, arrays: Sequence[np.ndarray]) -> Answer:
        with pytest.raises(VerifyError):
            hlo.verify(hlo.parse(text))
        return self._answer


def _asked(monkeypatch: pytest.MonkeyPatch, peer: _Peer) -> Outcome:
    monkeypatch.setattr(acceptance, "XLA", lambda timeout: peer)
    with ORACLES["xla-accepts"].open() as of:
        return of([_CASE])[0]


_CRASH = "SIGABRT: F1121 10:00:00.0 1 shape.cc:12] Check failed: x"
_UNREAD = "Syntax error when trying to parse the text: was parsing 3:4: error: no {} here\n"


@pytest.mark.parametrize(
    ("answer", "own", "kind"),
    [
        (Answer(error="refused"), None, None),
        (Answer(crash=_CRASH), None, "crash: shape.cc:12]"),
        (Answer(error=""), Answer(crash=_CRASH), "crash: shape.cc:12]"),
        (Answer(()), None, "taken: "),
        (Answer(error=""), Answer(error=_UNREAD.format("transpose")), "refused: no transpose here"),
        (Answer(error=""), Answer(error=_UNREAD.format('attribute "is_stable"')), "refused: "),
        (Answer(error=""), Answer(error="out of memory"), None),
    ],
)
def test_what_a_compiler_may_do(
    answer: Answer, own: Answer | None, kind: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _asked(monkeypatch, _Peer(answer, own))
    if kind is None:
        assert found is None
    else:
        assert isinstance(found, Difference) and found.kind.startswith(kind), found
        assert own is not None or "\n  ROOT r = " in found.detail


@pytest.mark.parametrize("reason", UNREAD)
def test_what_is_known_to_be_refused(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Answer(error=f"Syntax error: was parsing 3:4: error: {reason}64")
    assert _asked(monkeypatch, _Peer(Answer(error=""), own)) is None


def test_xla_refuses_them() -> None:
    pytest.importorskip("jaxlib")
    text = "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT r = f32[4] negate(x)\n}\n"
    with ORACLES["xla-accepts"].open() as of:
        assert of([Case(hlo.parse(text), (np.zeros(4, np.float32),))]) == [None]
