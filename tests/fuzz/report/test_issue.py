"""The text of an issue names the compiler that is wrong."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version

import numpy as np
import pytest

import hlo
from fuzz.judge.failure import Against, Judged
from fuzz.peers.xla import Answer
from fuzz.report.issue import issue
from fuzz.report.report import Report
from interp.envelope.budget import EXACT, FAST, UNKNOWN, XLA_CPU, XLA_GPU, Budget

_MODULE = hlo.parse("HloModule m\nENTRY e { x = s32[2] parameter(0)  ROOT r = s32[2] abs(x) }")
_X = np.array([1, 2], np.int32)


@pytest.mark.parametrize(
    ("command", "budget", "name"),
    [
        (None, XLA_CPU, f"XLA:CPU of jaxlib {version('jaxlib')}"),
        ("pjrt:/opt/vendor/chip.so,memory=0.5", UNKNOWN, "chip.so"),
        ("'/opt/my tools/compiler' -O2", UNKNOWN, "compiler"),
    ],
)
def test_the_title_names_the_compiler(command: str | None, budget: Budget, name: str) -> None:
    against = Against(lambda text, arrays: Answer((_X + 1,)), budget)
    failure = against.failure(_MODULE, (_X,))
    assert failure is not None
    text = issue(Report(_MODULE, (_X,), Judged(failure, budget, command), b"", (_X,)), {})
    assert text.startswith(f"# {name}: wrong result of `abs`\n")


@pytest.mark.parametrize(
    ("command", "against"),
    [
        (None, "xla"),
        ("pjrt:/opt/vendor/chip.so", "pjrt:/opt/vendor/chip.so"),
        ("/opt/compiler", "/opt/compiler"),
    ],
)
@pytest.mark.parametrize("is_refused", [False, True])
def test_what_is_checked_is_the_program_that_the_compiler_takes(
    command: str | None, against: str, is_refused: bool
) -> None:
    failure = Against(lambda text, arrays: Answer((_X + 1,)), XLA_CPU).failure(_MODULE, (_X,))
    assert failure is not None
    failure = replace(failure, taken=_MODULE if is_refused else None)
    text = issue(Report(_MODULE, (_X,), Judged(failure, XLA_CPU, command), b"", (_X,)), {})
    name = "taken.hlo" if is_refused else "reduced.hlo"
    assert f"hlo check {name} --args arguments.npz --against {against}" in text
    assert text.count("hlo check") == 1


@pytest.mark.parametrize(
    ("budget", "said", "unsaid"),
    [
        (XLA_CPU, ["budget XLA:CPU", "contracts", "flushes"], ["not measured"]),
        (EXACT, ["functions 0;", "that adds in any order."], ["contracts", "flushes", "wide"]),
        (FAST, ["contracts products into sums and keeps narrow"], ["flushes", "measured"]),
        (XLA_GPU, ["not measured", "flushes"], []),
    ],
)
def test_what_is_legal_is_what_the_budget_admits(
    budget: Budget, said: list[str], unsaid: list[str]
) -> None:
    failure = Against(lambda text, arrays: Answer((_X + 1,)), budget).failure(_MODULE, (_X,))
    assert failure is not None
    text = issue(Report(_MODULE, (_X,), Judged(failure, budget), b"", (_X,)), {})
    (line,) = [line for line in text.splitlines() if line.startswith("“Legal”")]
    assert all(one in line for one in said) and not any(one in line for one in unsaid)
