"""Peers: other processes that may crash or hang, and what XLA answers."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import hlo
from fuzz.peers import stack
from fuzz.peers.isolated import Isolated, Outcome
from fuzz.peers.symbols import readable
from fuzz.peers.xla import XLA
from interp.envelope.budget import XLA_CPU
from interp.envelope.enclosure import contains
from interp.envelope.evaluation import enclose


def _obey(order: str) -> str:
    if order == "abort":
        os.write(2, b"the end is near\n")
        os.abort()
    if order == "hang":
        time.sleep(100)
    if order == "leave":
        os._exit(3)
    if order == "leave later":
        threading.Timer(0.05, os._exit, (3,)).start()
    return f"{order} done"


def start() -> Callable[[str], str]:
    return _obey


@pytest.fixture(scope="module")
def pool() -> Iterator[Isolated]:
    with Isolated(start, workers=2, timeout=2.0) as pool:
        yield pool


def test_results_come_back(pool: Isolated) -> None:
    found = dict(pool.map((f"job {n}",) for n in range(20)))
    assert found == {n: Outcome(f"job {n} done") for n in range(20)}


@pytest.mark.parametrize(
    ("order", "crash"),
    [
        ("abort", "SIGABRT: the end is near"),
        ("leave", "exit 3"),
        ("hang", "no answer in 2 s"),
    ],
)
def test_a_death_is_an_outcome_and_others_go_on(order: str, crash: str, pool: Isolated) -> None:
    found = dict(pool.map([("one",), (order,), ("two",), ("three",)]))
    assert found.pop(1) == Outcome(None, crash)
    assert sorted(outcome.result for outcome in found.values()) == [
        "one done",
        "three done",
        "two done",
    ]


def test_a_death_after_the_answer_is_nobody_elses() -> None:
    with Isolated(start) as pool:
        assert pool("leave later").result == "leave later done"
        time.sleep(1.0)
        assert pool("two") == Outcome("two done")


NEGATE = """HloModule negated
ENTRY main {
  x = f64[3] parameter(0)
  ROOT r = (f64[3], f64[3]) tuple(x, x)
}
"""


def test_xla_answers() -> None:
    pytest.importorskip("jaxlib")
    with XLA() as xla:
        answer = xla(NEGATE, [np.array([1.0, 1 / 3, np.nan])])
        assert answer.outputs is not None and answer.compile > 0
        assert [x.dtype for x in answer.outputs] == [np.float64] * 2
        assert np.array_equal(answer.outputs[1], [1.0, 1 / 3, np.nan], equal_nan=True)
        refused = xla(NEGATE.replace("tuple", "pair"), [])
        assert refused.error is not None and "pair" in refused.error


class _Dying:
    """In place of processes: they all die in the same way."""

    crash = ""
    calls = 0

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __call__(self, *_: object) -> Outcome:
        type(self).calls += 1
        return Outcome(None, self.crash)

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("crash", "calls"), [("SIGABRT: F1122 literal.cc:2519] Unhandled", 3), ("SIGSEGV", 4)]
)
def test_a_death_counts_if_a_new_process_dies_too(
    crash: str, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fuzz.peers.xla.Isolated", _Dying)
    monkeypatch.setattr(_Dying, "crash", crash)
    monkeypatch.setattr(_Dying, "calls", 0)
    with XLA() as run:
        assert [run("", ()).crash for _ in range(2)] == [crash] * 2
    assert _Dying.calls == calls


def test_a_stack_says_where_a_process_died() -> None:
    with Isolated(start, timeout=20.0, stacks=True) as pool:
        outcome = pool("abort")
    assert outcome.crash == "SIGABRT: the end is near"
    assert len(outcome.frames) > 3
    assert stack.place(outcome.frames, re.compile("xla::")) is None  # Python called it itself


ALL_TO_ALL = """HloModule exchange
ENTRY main {
  x = f32[] parameter(0)
  ROOT r = (f32[]) all-to-all(x)
}
"""

DIVISION = """HloModule division
ENTRY main {
  x = s32[] constant(7)
  y = s32[] constant(0)
  ROOT r = s32[] divide(x, y)
}
"""

CONVERSION = """HloModule conversion
ENTRY main {
  x = c64[] constant((1, 2))
  ROOT r = s32[] convert(x)
}
"""


def test_the_function_of_xla_that_crashes_is_named() -> None:
    pytest.importorskip("jaxlib")
    with XLA() as xla:
        answers = [xla(ALL_TO_ALL, [np.float32(1)]), xla(DIVISION, []), xla(CONVERSION, [])]
    assert [answer.crash for answer in answers] == [
        "SIGSEGV in mlir::stablehlo::AllToAllOp::getSplitDimension",
        "SIGFPE in mlir::stablehlo::FoldDivOpPattern",  # not what this calls for signed numbers
        "SIGSEGV in mlir::stablehlo::foldConvert",  # not the list of numbers that it reads
    ]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("_ZNK3xla5Shape10dimensionsEi", "xla::Shape::dimensions"),
        ("_ZN3xla12_GLOBAL__N_1L3MapIN4mlir6AcosOpEEEvT_", "xla::Map"),
        ("_ZN4mlir12_GLOBAL__N_16ExportENS0_5AddOpENS1_7ContextE", "mlir::Export(AddOp)"),
        ("raise", "raise"),
    ],
)
def test_names_of_functions(name: str, shown: str) -> None:
    assert readable(name) == shown


CHOLESKY = """HloModule factor
ENTRY main {
  x = f32[2,2]{0,1} parameter(0)
  ROOT f = (f32[2,2]{0,1}, s32[]) custom-call(x), custom_call_target="lapack_spotrf_ffi", operand_layout_constraints={f32[2,2]{0,1}}, api_version=API_VERSION_TYPED_FFI, backend_config={uplo = 76 : ui8}
}
"""  # noqa: E501 (one instruction)


def test_xla_has_lapack() -> None:
    """And the envelope knows what it may give: a factor nearby, and that there is one."""
    pytest.importorskip("jaxlib")
    matrix = np.array([[4, 2], [2, 3]], np.float32)
    with XLA() as xla:
        answer = xla(CHOLESKY, [matrix])
    assert answer.outputs is not None, answer.error or answer.crash
    factor, info = enclose(hlo.parse(CHOLESKY), matrix, peer=XLA_CPU).result
    assert contains(factor, answer.outputs[0]).all() and (factor.high - factor.low < 1e-4).all()
    assert answer.outputs[1] == info.low == info.high == 0
    factor, info = enclose(hlo.parse(CHOLESKY), matrix - 4, peer=XLA_CPU).result
    assert factor.nan.any() and info.low < info.high
