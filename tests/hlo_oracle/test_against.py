"""``hlo check --against``: another compiler's results beside what is legal."""

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np
import pytest

import hlo
import interp
from fuzz.peers.xla import Answer
from hlo_oracle import peer_verdicts
from hlo_oracle.command.check import _verdict
from hlo_oracle.command.main import main
from hlo_oracle.measurement import Row
from hlo_oracle.peer_verdicts import Judgement, Peer, judge
from interp.envelope.budget import XLA_CPU

PROGRAM = """HloModule softly
ENTRY main {
  x = f32[4] parameter(0)
  e = f32[4] exponential(x)
  n = s32[4] convert(x)
  ROOT r = (f32[4], s32[4]) tuple(e, n)
}
"""
X = np.array([0.5, 1, 2, 3], np.float32)


class Fake:
    """A compiler with one answer."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __call__(self, text: str, arrays: object) -> Answer:
        return self.answer


class Once(Fake):
    """A compiler that takes no program with more results."""

    def __call__(self, text: str, arrays: object) -> Answer:
        return self.answer if text == LONG else Answer(error="no")


def judgement(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> Judgement:
    peer = Peer(lambda timeout: Fake(answer), XLA_CPU, ("numpy",), "")  # type: ignore[arg-type, return-value]
    monkeypatch.setitem(peer_verdicts.PEERS, "fake", peer)
    module = hlo.parse(PROGRAM)
    exact = interp.evaluate(module, X)
    return judge("fake", module, PROGRAM, (X,), exact=exact, seed=0)


def test_equal_and_within(monkeypatch: pytest.MonkeyPatch) -> None:
    near = np.nextafter(np.exp(X), np.float32(9))
    found = judgement(Answer((near, X.astype(np.int32))), monkeypatch)
    assert found.counts is not None and found.counts["outside"] == 0
    assert found.counts["equal"] >= 4 and found.counts["within"] >= 1


def test_outside_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = np.exp(X) + np.float32([0, 0, 0.25, 0])
    found = judgement(Answer((wrong, np.rint(X).astype(np.int32))), monkeypatch)
    assert found.counts is not None and found.counts["outside"] == 1
    (line,) = found.outside
    assert line.startswith("{0}: 1 of 4 outside, first at [2]: 7.6390557, where 7.389056 is exact")


LONG = """HloModule long
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[20000] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add
}
"""


def test_an_unlikely_sum_is_named_and_proves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = np.random.default_rng(0).standard_normal(20000).astype(np.float32)
    answer = Answer((x.astype(np.float64).sum().astype(np.float32) + np.float32(10),))
    peer = Peer(lambda timeout: Once(answer), XLA_CPU, ("numpy",), "")  # type: ignore[arg-type, return-value]
    monkeypatch.setitem(peer_verdicts.PEERS, "fake", peer)
    module = hlo.parse(LONG)
    found = judge("fake", module, LONG, (x,), exact=interp.evaluate(module, x), seed=0)
    assert found.counts is not None and found.counts["undetermined"] == 1 and not found.outside
    (line,) = found.unlikely
    assert line.startswith(
        "unlikely, no proof: result: 1 undetermined beyond 40 standard deviations of random"
    )
    row = Row("f", outputs=("f32[]",), verdicts=found.counts, unlikely=found.unlikely)
    assert row.status == 0 and line in _verdict(row)[2]
    assert _verdict(row)[0] == "undetermined: elements 1 undetermined; C not run"


def test_the_compiler_that_is_judged_comes_first() -> None:
    counts = {"equal": 3, "outside": 1}
    row = Row("f", outputs=("f32[4]",), run=0.1, verdicts=counts, outside=("here",))
    said = "OUTSIDE, proven wrong: elements 3 equal, 1 outside; C: 1 output equal"
    assert _verdict(row) == (said, "red", ["here"])
    assert _verdict(replace(row, outside=(), verdicts={"equal": 4}))[0].startswith("equal: ")
    assert _verdict(replace(row, verdicts=None, refused="why"))[0].startswith("no results to judge")


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (Answer((X,)), "1 arrays, not 2"),
        (Answer((X[:2], X.astype(np.int32))), "{0}: float32[2], not float32[4]"),
    ],
)
def test_another_shape(answer: Answer, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert line in judgement(answer, monkeypatch).outside


def test_a_refusal_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = judgement(Answer(error="UNIMPLEMENTED: exponential\nmore"), monkeypatch)
    assert refused == Judgement(refused="UNIMPLEMENTED: exponential")
    assert judgement(Answer(crash="SIGSEGV"), monkeypatch) == Judgement(crash="SIGSEGV")


def test_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.hlo").write_text(PROGRAM)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["check", "--against", "xla", str(tmp_path)]) == 2
    assert "jaxlib is not installed" in capsys.readouterr().err


def test_xla(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jaxlib")
    (tmp_path / "p.hlo").write_text(PROGRAM)
    assert main(["check", "--no-c", "--against", "xla", str(tmp_path)]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert "XLA" in head.split() and "outside" not in row and "equal" in row


def test_a_crash_of_xla_is_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jaxlib")
    (tmp_path / "p.hlo").write_text(
        """HloModule m
a { p = f32[] parameter(0)  q = f32[] parameter(1)  ROOT s = f32[] add(p, q) }
ENTRY e {
  x = f32[3] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[2] reduce-window(x, z), window={size=1 pad=0_-1}, to_apply=a
}
"""
    )
    assert main(["check", "--no-c", "--against", "xla", str(tmp_path)]) == 1
    assert "CRASHED\n    SIGABRT: " in capsys.readouterr().out


OPEN = """HloModule open
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY main {
  x = f32[4] parameter(0)
  one = f32[] constant(1)
  ROOT r = f32[4] reduce-window(x, one), window={size=4 pad=3_0}, to_apply=sum
}
"""


def test_what_the_language_leaves_open_is_undetermined() -> None:
    module = hlo.parse(OPEN)
    exact = np.asarray(interp.evaluate(module, X))
    twice = Fake(Answer(outputs=[exact + 1]))
    found = peer_verdicts.peer_judgement(
        twice,  # type: ignore[arg-type]
        XLA_CPU, module, OPEN, (X,), exact=exact, seed=0,
    )  # fmt: skip
    assert found.counts is not None and found.counts["outside"] == 0
    assert found.counts["undetermined"] == 4 and not found.outside
    assert found.undetermined == ("the result is open: %r: a fold from what is no identity",)
    fine = OPEN.replace("constant(1)", "constant(0)")
    module = hlo.parse(fine)
    found = peer_verdicts.peer_judgement(
        twice,  # type: ignore[arg-type]
        XLA_CPU, module, fine, (X,), exact=interp.evaluate(module, X), seed=0,
    )  # fmt: skip
    assert found.counts is not None and found.counts["outside"] == 4


def test_a_program_that_means_nothing_is_not_run() -> None:
    text = """HloModule nothing
ENTRY main { x = f32[4] parameter(0)
  n = s32[] constant(5)
  ROOT r = f32[<=4] set-dimension-size(x, n), dimensions={0} }
"""
    module = hlo.parse(text)
    none = Fake(Answer(crash="it was run"))
    found = peer_verdicts.peer_judgement(
        none,  # type: ignore[arg-type]
        XLA_CPU, module, text, (X,), exact=X, seed=0,
    )  # fmt: skip
    assert found.crash is None and found.refused is not None
    assert found.refused.startswith("the program means nothing: ")


SORTED = """HloModule sorted
greater { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=GT }
ENTRY main { x = f32[4] parameter(0)
  s = f32[4] sort(x), dimensions={0}, to_apply=greater
  y = f32[4] negate(x)
  ROOT r = (f32[4], f32[4]) tuple(s, y) }
"""


class OfSorted(Fake):
    """A compiler that shows no values in between."""

    def __call__(self, text: str, arrays: object) -> Answer:
        return self.answer if text == SORTED else Answer(error="no other program")


def test_a_nan_in_a_sort_leaves_that_open_alone() -> None:
    x = np.float32([1, np.nan, 3, 2])
    module = hlo.parse(SORTED)
    exact = interp.evaluate(module, x)
    for negated, outside in ((-x, 0), (x, 3)):
        answer = OfSorted(Answer(outputs=(x[::-1].copy(), negated)))
        found = peer_verdicts.peer_judgement(
            answer,  # type: ignore[arg-type]
            XLA_CPU, module, SORTED, (x,), exact=exact, seed=0,
        )  # fmt: skip
        assert found.counts is not None and found.counts["outside"] == outside
        assert found.counts["undetermined"]
        assert "%s: a sort by what is no strict weak order" in found.undetermined[0]
    crash = Fake(Answer(crash="SIGSEGV"))
    found = peer_verdicts.peer_judgement(
        crash,  # type: ignore[arg-type]
        XLA_CPU, module, SORTED, (x,), exact=exact, seed=0,
    )  # fmt: skip
    assert found.crash is None and "element [1] (nan)" in str(found.refused)


LAID_OUT = """HloModule laid_out
f { a = f32[2,3]{0,1} parameter(0)
  ROOT b = f32[6]{0} bitcast(a) }
ENTRY main { x = f32[2,3]{0,1} parameter(0)
  ROOT r = f32[6]{0} fusion(x), kind=kLoop, calls=f }
"""


class WithoutLayouts(Fake):
    """A compiler that refuses texts with layouts."""

    def __call__(self, text: str, arrays: object) -> Answer:
        return Answer(error="no layouts, please") if "{0,1}" in text else self.answer


@pytest.mark.parametrize("right", [True, False])
def test_a_refused_program_is_judged_in_an_equivalent_form(
    monkeypatch: pytest.MonkeyPatch, right: bool
) -> None:
    """Elements in the order of memory, which a bitcast reads."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    elements = x.T.ravel() if right else x.ravel()
    peer = Peer(
        lambda timeout: WithoutLayouts(Answer((elements,))),  # type: ignore[arg-type, return-value]
        XLA_CPU, (), "", peer_verdicts.PEERS["xla"].equivalent,
    )  # fmt: skip
    monkeypatch.setitem(peer_verdicts.PEERS, "fake", peer)
    module = hlo.parse(LAID_OUT)
    exact = interp.evaluate(module, x)
    found = judge("fake", module, LAID_OUT, (x,), exact=exact, seed=0)
    assert found.counts is not None and (found.counts["outside"] == 0) is right
    assert found.instead is not None and "no layouts, please" in found.instead


def test_what_is_refused_in_every_form_says_why_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that a peer refuses in every form has the reason of the first; peers without an
    equivalent form are asked once."""

    class Never(Fake):
        def __call__(self, text: str, arrays: object) -> Answer:
            texts.append(text)
            return Answer(error=f"no {len(texts)}")

    module, x = hlo.parse(LAID_OUT), np.zeros((2, 3), np.float32)
    for equivalent, count in ((peer_verdicts.PEERS["xla"].equivalent, 2), (None, 1)):
        texts: list[str] = []
        peer = Peer(lambda timeout: Never(Answer()), XLA_CPU, (), "", equivalent)  # type: ignore[arg-type, return-value]
        monkeypatch.setitem(peer_verdicts.PEERS, "fake", peer)
        found = judge("fake", module, LAID_OUT, (x,), exact=x, seed=0)
        assert found.refused == "no 1" and len(texts) == count


def test_xla_takes_what_it_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jax")
    program = tmp_path / "laid_out.hlo"
    program.write_text(LAID_OUT)
    assert main(["check", "--no-c", "--against", "xla", str(program)]) == 0
    told = capsys.readouterr().out
    assert "equal: elements 6 equal" in told and "judged without fusions" in told


# Its reduction is watched for an init that is no identity, where one result seems wrong.
_TUPLE = """HloModule pair
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  p = (f32[], f32[4]) parameter(0)
  init = f32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  ROOT r = f32[] reduce(x, init), dimensions={0}, to_apply=add
}
"""


@pytest.mark.parametrize("init", [0, 1])
def test_a_wrong_result_of_a_program_of_a_tuple_is_judged(
    init: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is open was asked of the arrays of the tuple as if they were the parameters."""
    given = Answer((np.float32(99) * np.ones((), np.float32),))
    peer = Peer(lambda timeout: Fake(given), XLA_CPU, ("numpy",), "")  # type: ignore[arg-type, return-value]
    monkeypatch.setitem(peer_verdicts.PEERS, "fake", peer)
    module, value = hlo.parse(_TUPLE), (np.full((), init, np.float32), X)
    exact = interp.evaluate(module, value)
    found = judge("fake", module, _TUPLE, (value,), exact=exact, seed=0)
    assert bool(found.outside) == (init == 0), "an init of 1 may be added several times"
