"""The campaign that puts bugs into programs, in short."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import hlo
from fuzz.campaign import local
from fuzz.campaign.directory import Directory
from hlo.opcodes import OPCODES
from interp.envelope.budget import XLA_CPU
from interp.envelope.verdict import OUTSIDE, UNDETERMINED
from selftest.injection.__main__ import main, table
from selftest.injection.bug import Bug
from selftest.injection.campaign import (
    ALLOWED,
    CONTRADICTION,
    MISSED,
    UNSEEN,
    Injections,
    injected,
    tallied,
)
from selftest.injection.cases import Case, case, drawn
from selftest.injection.catalogue import BUGS
from selftest.injection.peer import Injected, Site


def test_the_catalogue() -> None:
    assert len(BUGS) >= 200
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    assert {opcode for bug in BUGS for opcode in bug.opcodes} <= set(OPCODES)


def test_most_bugs_in_models_are_proven(tmp_path: Path) -> None:
    """The whole campaign gives each bug several programs; docs/verdict.md has its figures."""
    subject = Injections(seed=0, most=1)
    list(local.run(tmp_path, subject, local.Limits(subject.programs(1), 3600.0), 0))
    directory = Directory(tmp_path, subject.facts)
    assert not directory.found()
    tally = tallied(directory, directory.numbers(), most=1)
    total: Counter[str] = Counter()
    for bug in BUGS:
        if bug.is_legal:
            assert not tally.counts[bug.name][OUTSIDE], bug.name
        else:
            total += tally.counts[bug.name]
    assert not total[CONTRADICTION]
    assert total[OUTSIDE] >= 200
    assert total[OUTSIDE] >= 0.9 * (total[OUTSIDE] + total[UNDETERMINED] + total[MISSED])
    assert table(tally.counts)


def test_drawn_cases_are_the_same_for_a_seed() -> None:
    """Drawn cases are the same for a seed, but for those left out because they take too long."""
    one, other = (
        {
            case.name: hlo.format(case.module)
            for number in range(4)
            if (case := drawn("gather", 3, number, XLA_CPU)) is not None
        }
        for _ in range(2)
    )
    assert all(other.get(name, text) == text for name, text in one.items())


def one_case(text: str, *values: object) -> Case:
    found = case("text", hlo.parse(f"HloModule m\nENTRY main {{\n{text}\n}}\n"), values, XLA_CPU)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("exponential: error of 1e-4", OUTSIDE),
        ("exponential: one unit off", ALLOWED),
        ("exponential: infinity becomes the largest number", UNSEEN),
    ],
)
def test_outcomes(name: str, outcome: str) -> None:
    text = "  x = f32[3] parameter(0)\n  ROOT e = f32[3] exponential(x)"
    given = one_case(text, np.array([1, 2, 3], np.float32))
    (bug,) = (bug for bug in BUGS if bug.name == name)
    found = injected(bug, given, given.sites[0])
    assert found is not None and found.outcome == outcome


@pytest.mark.parametrize(("flag", "outcome"), [("", ALLOWED), (", is_stable=true", OUTSIDE)])
def test_equal_keys_in_another_order_are_no_bug_unless_a_sort_is_stable(
    flag: str, outcome: str
) -> None:
    module = hlo.parse(f"""HloModule m
less {{ a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT }}
ENTRY e {{ x = s32[4] parameter(0)
  i = s32[4] iota(), iota_dimension=0
  ROOT r = (s32[4], s32[4]) sort(x, i), dimensions={{0}}, to_apply=less{flag} }}
""")
    given = case("ties", module, [np.array([2, 1, 2, 1], np.int32)], XLA_CPU)
    assert given is not None
    (bug,) = (bug for bug in BUGS if bug.name == "sort: not stable")
    found = injected(bug, given, given.sites[-1])
    assert found is not None and found.outcome == outcome


def test_a_bug_in_place_does_not_reach_the_case() -> None:
    """A bug that writes into an operand in place does not change the arguments of the case; into
    constants it cannot write."""
    text = """  x = f32[3] parameter(0)
  u = f32[1] constant({7})
  i = s32[] constant(1)
  d = f32[3] dynamic-update-slice(x, u, i)
  ROOT r = f32[3] add(x, d)"""
    values = np.array([1, 2, 3], np.float32)
    given = one_case(text, values)
    (bug,) = (b for b in BUGS if b.name.startswith("dynamic-update-slice: in place"))
    (site,) = (s for s in given.sites if s.instruction.name == "d")
    found = injected(bug, given, site)
    assert found is not None and found.outcome == OUTSIDE
    assert values.tolist() == [1, 2, 3]


def test_a_bug_is_not_where_another_instruction_has_the_name() -> None:
    """Programs that show the values of loops have names of their own."""
    text = "HloModule m\nENTRY main {{\n  x = s32[] parameter(0)\n  ROOT y = s32[] {}(x)\n}}\n"
    one, other = (hlo.parse(text.format(opcode)) for opcode in ("negate", "not"))
    bug = Bug("a bug", "zero", ("negate",), lambda call: np.zeros_like(call.operands[0]))
    peer = Injected(bug, Site(one.entry, one.entry.root_instruction), [np.int32(5)])
    assert [peer(one)[0], peer(other)[0]] == [0, ~5]


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--most", "1", "--minutes", "0"]) == 0
    assert capsys.readouterr().out.startswith("| | bugs | outside | undetermined | missed |")


def test_a_contradiction_is_found_and_reduced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An injected bug whose numbers are declared legal contradicts the right result: it is found
    and reduced."""
    (bug,) = (bug for bug in BUGS if bug.name == "exponential: error of 1e-4")
    monkeypatch.setattr("selftest.injection.campaign.BUGS", (bug,))
    monkeypatch.setattr("selftest.injection.campaign.is_allowed", lambda *_: True)
    subject = Injections(seed=0, most=1)
    total = [*local.run(tmp_path, subject, local.Limits(subject.programs(1), 3600.0, 5.0), 0)][-1]
    assert (
        total.counts["injections"] == total.tally("outcomes")[f"{bug.name}: {CONTRADICTION}"] == 1
    )
    (found,) = Directory(tmp_path, subject.facts).found()
    assert found["kind"] == f"{CONTRADICTION}: {bug.name}" and found["opcodes"] == ["exponential"]
