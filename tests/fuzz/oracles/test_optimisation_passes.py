"""A pass of XLA is blamed for what is right without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import hlo
from fuzz.oracles import Difference, LeftOut, Outcome, is_known, named, optimisation_passes
from fuzz.oracles.optimisation_passes import PASSES
from fuzz.peers.xla import XLA, Answer
from fuzz.reducer.search import Case

_CASE = Case(
    hlo.parse("HloModule m\nENTRY e { x = s32[2] parameter(0)  ROOT r = s32[2] negate(x) }"),
    (np.array([1, 2], np.int32),),
)
_RIGHT = Answer((np.array([-1, -2], np.int32),))
_WRONG = Answer((np.array([1, -2], np.int32),))
_CRASH = Answer(crash="SIGABRT: F1121 10:00:00.0 1 shape.cc:12] Check failed: x")


class _Peer:
    """A compiler that gives one answer, and another one without a pass."""

    def __init__(self, answer: Answer, without: Answer, hlo_pass: str = "cse") -> None:
        self._answer, self._without, self._pass = answer, without, hlo_pass

    def __enter__(self) -> _Peer:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""

    def __call__(self, text: str, arrays: Sequence[np.ndarray]) -> Answer:
        return self._answer

    def without(self, hlo_pass: str) -> Callable[[str, Sequence[np.ndarray]], Answer]:
        return lambda text, arrays: self._without if hlo_pass == self._pass else self._answer


def _asked(monkeypatch: pytest.MonkeyPatch, peer: _Peer, name: str = "xla-flags") -> Outcome:
    monkeypatch.setattr(optimisation_passes, "XLA", lambda timeout: peer)
    with named(name).open() as of:
        return of([_CASE])[0]


@pytest.mark.parametrize(
    ("answer", "without", "kind"),
    [
        (_RIGHT, _RIGHT, None),
        (_WRONG, _RIGHT, "cse: wrong result: another number"),
        (_RIGHT, _WRONG, "without cse: wrong result: another number"),
        (_CRASH, _RIGHT, "cse: crash: shape.cc:12]"),
        (_RIGHT, _CRASH, "without cse: crash: shape.cc:12]"),
        (_WRONG, _CRASH, None),  # whose fault it is, it is not that of the pass
        (_WRONG, _WRONG, None),
    ],
)
def test_what_differs_without_a_pass(
    answer: Answer, without: Answer, kind: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _asked(monkeypatch, _Peer(answer, without))
    if kind is None:
        assert found is None
        return
    assert isinstance(found, Difference) and found.kind == kind
    assert found.oracle == "xla-flags: cse" and is_known(found.oracle)
    assert (found.judged is None) == kind.startswith("without")
    again = _asked(monkeypatch, _Peer(answer, without), found.oracle)
    assert isinstance(again, Difference) and again.kind == kind
    assert _asked(monkeypatch, _Peer(answer, without), "xla-flags: dce") is None


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Answer(error="no")
    assert _asked(monkeypatch, _Peer(refused, _RIGHT, PASSES[-1])) == LeftOut("refused")
    last = _asked(monkeypatch, _Peer(_RIGHT, refused, PASSES[-1]))
    assert last == LeftOut(f"refused without {PASSES[-1]}")


def test_a_chunk_goes_through_many_passes() -> None:
    texts = (f"HloModule m{n}\nENTRY e {{ ROOT x = s32[] parameter(0) }}" for n in range(200))
    chosen = {optimisation_passes.chosen(Case(hlo.parse(text), ()), PASSES) for text in texts}
    assert len(chosen) > len(PASSES) // 2


def test_xla_leaves_the_pass_out() -> None:
    """The wrapper of single instructions by fusions: without it there is no fusion."""
    pytest.importorskip("jaxlib")
    text = hlo.format(_CASE.module)
    with XLA() as peer:
        answers = [run(text, _CASE.arrays) for run in (peer, peer.without("fusion-wrapper"))]
        assert [answer.outputs is not None for answer in answers] == [True, True]
    with named("xla-flags: fusion-wrapper").open() as of:
        assert of([_CASE]) == [None]
