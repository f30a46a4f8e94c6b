"""Check what tells findings apart: the instruction to blame, its types, its constants."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import hlo
from fuzz.campaign import findings, oracle_examiner
from fuzz.campaign.chunk_range import work
from fuzz.campaign.directory import Directory
from fuzz.campaign.findings import Origin
from fuzz.campaign.oracle_examiner import OracleExaminer
from fuzz.campaign.plan import Plan, cases
from fuzz.campaign.program_findings import reduced_case
from fuzz.campaign.subject import Chunk, Finding, Part, Suspect, Told, whole
from fuzz.judge.blame import alone, blamed
from fuzz.judge.failure import CRASH, Against, Failure, Judged, WrongStep
from fuzz.oracles import ORACLES, Difference, Outcome
from fuzz.oracles.compilers import judging
from fuzz.oracles.equivalent import baked
from fuzz.oracles.oracle import Oracle, Property, stateless
from fuzz.reducer.search import Case
from interp.envelope.budget import XLA_CPU
from tests.fuzz.planted import answering

_ROOTS = {
    "ROOT r = s8[2] convert(x)": "convert(f32) -> s8",
    "ROOT r = f32[2] add(x, x)": "add(f32) -> f32",
    "ROOT r = f32[2] power(x, b)": "power(f32, constant f32) -> f32",
    "ROOT r = f32[2] select(p, x, b)": "select(pred, f32, constant f32) -> f32",
    "ROOT r = f32[2] broadcast(c), dimensions={}": "broadcast(constant f32) -> f32",
    "n = f32[2] negate(x)\n  ROOT r = (f32[2], f32[2]) tuple(n, x)": "negate(f32) -> f32",
}


def _module(root: str) -> hlo.Module:
    return hlo.parse(f"""HloModule m
ENTRY e {{
  x = f32[2] parameter(0)
  p = pred[2] parameter(1)
  c = f32[] constant(2)
  b = f32[2] broadcast(c), dimensions={{}}
  {root}
}}
""")


@pytest.mark.parametrize(("root", "said"), _ROOTS.items())
def test_the_last_instruction_that_computes(root: str, said: str) -> None:
    module = _module(root)
    if "broadcast(c)" not in root:
        assert blamed(Case(module, ())) == said
    assert blamed(Case(module, ()), culprit=said.partition("(")[0]) == said


def test_a_culprit_is_blamed_before_the_last() -> None:
    module = _module("e = f32[2] exponential(x)\n  ROOT r = f32[2] reverse(e), dimensions={0}")
    assert blamed(Case(module, ())) == "reverse(f32) -> f32"
    assert blamed(Case(module, ()), culprit="exponential") == "exponential(f32) -> f32"
    assert blamed(Case(module, ()), culprit="sine") == "reverse(f32) -> f32"


def test_a_wrong_step_is_blamed() -> None:
    run = answering("floor", lambda x: x + np.float32(1))
    module = _module("f = f32[2] floor(x)\n  ROOT r = f32[2] reverse(f), dimensions={0}")
    case = Case(module, (np.array([0.5, 1], np.float32), np.array([True, False])))
    against = Against(run, XLA_CPU)
    failure = against.failure(case.module, case.arrays)
    culprit = against.culprit(case.module, case.arrays)
    assert blamed(case, failure, culprit) == "floor(f32) -> f32"


@contextmanager
def _narrow(name: str) -> Iterator[Property]:
    """An oracle that blames an instruction as long as it is open."""
    is_open = [True]

    def steps(case: Case) -> Sequence[WrongStep]:
        assert is_open
        return ()

    def of(asked: Sequence[Case]) -> list[Outcome]:
        judged = Judged(Failure(CRASH, frozenset(["a"]), "SIGABRT"), XLA_CPU)
        told = Difference("crash: SIGABRT", "here", name, judged=judged, blame=steps)
        return [told for _ in asked]

    yield of
    is_open.clear()


def test_a_narrower_oracle_blames_before_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, narrower in (("planted", "narrow"), ("narrow", "")):
        made = Oracle(name, "nothing", partial(_narrow, narrower), runs_c=False)
        monkeypatch.setitem(ORACLES, name, made)
    plan = Plan(3, ("planted",), 1)
    work(tmp_path, plan, range(1), 5.0)
    (kept,) = Directory(tmp_path, plan.facts).found()
    assert not kept["flaky"] and kept["blamed"]


def test_a_wrong_step_alone_keeps_what_is_constant_of_it() -> None:
    """Its operands are the compiler's own values, but for constants, moved ones, too."""
    run = answering("power", lambda x: x + np.float32(1))
    module = _module("e = f32[2] exponential(x)\n  ROOT r = f32[2] power(e, b)")
    case = Case(module, (np.array([0.0, 1], np.float32), np.array([True, False])))
    step = Against(run, XLA_CPU).wrong_step(case.module, case.arrays)
    assert step is not None
    small = alone(step)
    assert small is not None and blamed(small) == "power(f32, constant f32) -> f32"
    assert [one.tolist() for one in small.arrays] == [[1.0, np.float32(np.e)]]
    opcodes = [i.opcode for i in small.module.entry.instructions]
    assert sorted(opcodes) == ["broadcast", "constant", "parameter", "power"]


def test_what_leaves_the_same_alone_is_not_reduced_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong powers are one finding, of which few programs are reduced; another one's first is."""
    run = answering("power", lambda x: x + x.dtype.type(1))
    reduced = list[Case]()

    def kept(of: Property, case: Case, kind: str, seconds: float, **given: bool) -> Case | None:
        reduced.append(case)
        return reduced_case(of, case, kind, seconds, **given)

    texts = [f"y = f32[2] {name}(x)\n  ROOT r = f32[2] power(y, x)" for name in _BEFORE]
    texts.insert(2, "ROOT r = f32[2] power(x, b)")
    arrays = (np.array([0.5, 2], np.float32), np.array([True, False]))
    examples = [Case(_module(text), arrays) for text in texts]
    monkeypatch.setattr(oracle_examiner, "reduced_case", kept)
    examiner = OracleExaminer(lambda number: examples, {"xla": judging(Against(run, XLA_CPU))})
    for suspect in whole(examiner.chunk(0)).suspects:
        if not findings.is_known(tmp_path, suspect):
            small = examiner.reduced(suspect, 0, 20.0)
            findings.keep(tmp_path, "xla", small, Origin(0, 0, suspect.example), suspect.isolated)
    told = {one["blamed"]: one["times"] for one in findings.all_kept(tmp_path)}
    assert told == {"power(f32) -> f32": 5}
    assert len(reduced) == 2


def _in_a_branch(before: str) -> hlo.Module:
    """Return a program whose wrong power no value shows: it is in a branch."""
    return hlo.parse(f"""HloModule m
f {{
  y = f32[2] parameter(0)
  ROOT p = f32[2] power(y, y)
}}
ENTRY e {{
  x = f32[2] parameter(0)
  c = pred[] parameter(1)
  y = f32[2] {before}(x)
  ROOT r = f32[2] conditional(c, y, y), true_computation=f, false_computation=f
}}
""")


def test_what_is_cut_to_the_same_is_not_reduced_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cutting finds what was not seen to fail alone: only the first is made plain."""
    run = answering("power", lambda x: x + x.dtype.type(1))
    plain = list[Case]()

    def kept(of: Property, case: Case, kind: str, seconds: float, **given: bool) -> Case | None:
        plain.extend([case] if given.get("is_plain", True) else [])
        return reduced_case(of, case, kind, seconds, **given)

    arrays = (np.array([0.5, 2], np.float32), np.array(True))
    examples = [Case(_in_a_branch(before), arrays) for before in _BEFORE]
    monkeypatch.setattr(oracle_examiner, "reduced_case", kept)
    examiner = OracleExaminer(lambda number: examples, {"xla": judging(Against(run, XLA_CPU))})
    monkeypatch.setattr(Plan, "examiner", lambda plan, done: nullcontext(examiner))
    plan = Plan(3, ("xla",), 4)
    work(tmp_path, plan, range(1), 40.0)
    (one,) = Directory(tmp_path, plan.facts).found()
    assert (one["blamed"], one["times"]) == ("power(f32) -> f32", 4)
    assert len(plain) == 1


def test_each_instruction_that_is_wrong_is_told() -> None:
    """Both wrong powers of a program are reported, and not the right negate of a wrong operand."""
    run = answering("power", lambda x: x + x.dtype.type(1))
    module = _module("""y = f32[2] power(x, x)
  n = f32[2] negate(y)
  z = f32[2] power(x, b)
  ROOT r = (f32[2], f32[2]) tuple(n, z)""")
    case = Case(module, (np.array([0.5, 2], np.float32), np.array([True, False])))
    examiner = OracleExaminer(lambda number: [case], {"xla": judging(Against(run, XLA_CPU))})
    found = whole(examiner.chunk(0))
    assert found.counts["xla: violated"] == 1
    told = [suspect.isolated.blamed for suspect in found.suspects if suspect.isolated is not None]
    assert told == ["power(f32) -> f32", "power(f32, constant f32) -> f32"]
    assert len(found.suspects) == 2


def test_what_fails_with_constants_as_with_arguments_is_one_suspect() -> None:
    """A program that fails with constants as with arguments is one suspect, whichever is asked
    first."""
    run = answering("power", lambda x: x + x.dtype.type(1))
    of = judging(Against(run, XLA_CPU))

    def constants(asked: Sequence[Case]) -> list[Outcome]:
        others = [*map(baked, asked)]
        pairs = zip(others, of(others), strict=True)
        return [
            replace(one, case=other, oracle="xla") if isinstance(one, Difference) else one
            for other, one in pairs
        ]

    examples = [
        Case(_module("ROOT r = f32[2] power(x, x)"), (np.ones(2, np.float32), np.ones(2, bool))),
        Case(_module("ROOT r = f32[2] add(x, b)"), (np.ones(2, np.float32), np.ones(2, bool))),
    ]
    both = {"xla": of, "xla-constants": constants}
    for oracles, operand in (([*both], "f32"), ([*both][::-1], "constant f32")):
        properties = {name: both[name] for name in oracles}
        found = whole(OracleExaminer(lambda number: examples, properties).chunk(0))
        assert found.counts["xla-constants: violated"] == found.counts["xla: violated"] == 1
        (told,) = [one.isolated for one in found.suspects]
        assert told is not None and told.blamed == f"power({operand}) -> f32"


def _crash(kind: str) -> Suspect:
    return Suspect("planted", kind, "", 0, told_by_reduction=True)


def test_a_crash_at_a_known_place_with_other_opcodes_is_another(tmp_path: Path) -> None:
    """A check may fail for several defects; after three, what is left varies of itself."""

    def crash(*opcodes: str) -> Suspect:
        return replace(_crash("crash: place.cc:12]"), opcodes=frozenset(opcodes))

    for number, opcode in enumerate(("fusion", "and", "sort")):
        assert not findings.is_known(tmp_path, crash(opcode, "add"))
        assert findings.siblings(tmp_path, crash(opcode)) == number
        kind = "crash: place.cc:12]"
        found = Finding(kind, opcode, frozenset([opcode]), lambda folder: None)
        findings.keep(tmp_path, "planted", found, Origin(0, number, 0))
        assert findings.is_known(tmp_path, crash(opcode, "add"))
    assert findings.is_known(tmp_path, crash("add"))
    times = {one["detail"]: one["times"] for one in findings.all_kept(tmp_path)}
    assert sorted(times.values()) == [2, 2, 3]


def test_a_crash_at_a_known_place_is_not_reduced_again(tmp_path: Path) -> None:
    """However often it happens, if what was left of the first is in the program, too."""
    crash = _crash("crash: place.cc:12]")
    found = Finding(crash.kind, "", frozenset(), lambda folder: None)
    findings.keep(tmp_path, "planted", found, Origin(0, 0, 0))
    assert all(findings.is_known(tmp_path, crash) for _ in range(20))
    assert not findings.is_known(tmp_path, _crash("crash: SIGSEGV"))


@pytest.mark.parametrize(
    ("kind", "apart"),
    [
        ("crash: place.cc:12]", False),
        ("crash: xla::Shape::dimensions", False),
        ("crash: KeyError in directory.py:take", False),
        *((f"crash: {one}", True) for one in ("SIGSEGV", "signal 40", "exit 1", "generated code")),
        ("hang: hang", True),
        ("other bits", True),
    ],
)
def test_kinds_that_defects_share_are_told_by_types(kind: str, apart: bool) -> None:
    def key(opcode: str, blamed: str) -> str:
        found = Finding(kind, "", frozenset([opcode]), lambda folder: None, blamed=blamed)
        return findings.key("planted", found)

    assert len({key(opcode, "add(f32) -> f32") for opcode in ("add", "sort")}) == 2
    assert len({key("add", f"add({one}) -> {one}") for one in ("f32", "s8")}) == 1 + apart
    assert findings.is_unplaced(kind) == (apart and kind != "other bits")


_TYPES = ("s32", "u16", "s8", "u64")


def test_siblings_of_known_findings_get_less_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A suspect that blames an opcode known to be wrong for another type is most often the same
    defect, and gets a quarter of the time; one with a constant, or of another opcode, gets all of
    it."""
    seconds = list[tuple[str, float]]()
    told = [f"power({one}) -> {one}" for one in _TYPES]
    told += ["power(s32, constant s32) -> s32", "convert(s32) -> u16"]

    class Planted:
        def chunk(self, number: int, examples: Sequence[int] | None = None) -> Iterator[Part]:
            yield Part({0}, Chunk(suspects=[_suspect(blamed) for blamed in told]))

        def unreduced(self, suspect: Suspect) -> Finding:
            return Finding(suspect.kind, "", frozenset(), lambda folder: None)

        def reduced(self, suspect: Suspect, number: int, most: float) -> Finding:
            assert suspect.isolated is not None
            seconds.append((suspect.isolated.blamed, most))
            return Finding(
                suspect.kind, "", frozenset(), lambda folder: None, blamed=suspect.isolated.blamed
            )

        def write(self, number: int, example: int, folder: Path) -> None:
            pass

    monkeypatch.setattr(Plan, "examiner", lambda plan, done: nullcontext(Planted()))
    work(tmp_path, Plan(3, ("planted",), 1), range(1), 64.0)
    assert seconds == [*zip(told, (64.0, 16.0, 4.0, 1.0, 64.0, 64.0), strict=True)]


def _suspect(blamed: str) -> Suspect:
    isolated = Told(blamed, frozenset())
    return Suspect("planted", "another number", "", 0, told_by_reduction=True, isolated=isolated)


_BEFORE = ("exponential", "abs", "logistic", "sqrt")


def _converts_or_divides(asked: Sequence[Case]) -> list[Outcome]:
    """Speaks of every program with a convert or a divide, in the same words."""
    texts = (hlo.format(case.module) for case in asked)
    return [
        Difference("other bits", "here") if " convert(" in text or " divide(" in text else None
        for text in texts
    ]


def test_one_finding_does_not_hide_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs with two defects of one kind, of which the first may be known."""
    oracle = stateless("planted", "neither", _converts_or_divides)
    monkeypatch.setitem(ORACLES, "planted", replace(oracle, runs_c=False))
    plan = Plan(3, ("planted",), 20)
    work(tmp_path, plan, range(2), 5.0)
    found = Directory(tmp_path, plan.facts).found()
    told = [one["blamed"] for one in found]
    assert any(one.startswith("convert(") for one in told)
    assert any(one.startswith("divide(") for one in told)
    assert len({json.dumps([one["blamed"], one["opcodes"]]) for one in found}) == len(found)


def test_what_does_not_repeat_is_flaky(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it fails: the worker goes on, and the program is kept as it is."""
    for times in (1, 2, 3):
        calls = count()

        def fails(asked: Sequence[Case], times: int = times, calls: count = calls) -> list[Outcome]:
            first: Outcome = Difference("other bits", "once") if next(calls) < times else None
            return [first, *[None] * (len(asked) - 1)]

        oracle = stateless("planted", "always", fails)
        monkeypatch.setitem(ORACLES, "planted", replace(oracle, runs_c=False))
        plan, path = Plan(3, ("planted",), 3), tmp_path / str(times)
        work(path, plan, range(1), 5.0)
        (kept,) = Directory(path, plan.facts).found()
        assert kept["kind"] == "other bits" and kept["flaky"]
        (folder,) = (path / "findings").iterdir()
        assert folder.name.startswith("flaky-planted-other-bits-")
        original = hlo.format(cases(plan, 0)[0].module)
        assert {file.read_text() for file in folder.glob("*.hlo")} == {original}


def test_what_fails_in_another_way_each_time_is_not_flaky(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot be reduced, and it is a finding: reading memory that nobody wrote fails so."""
    calls = count()

    def fails(asked: Sequence[Case]) -> list[Outcome]:
        return [Difference(f"other bits {next(calls)}", ""), *[None] * (len(asked) - 1)]

    oracle = stateless("planted", "always", fails, together=True)
    monkeypatch.setitem(ORACLES, "planted", replace(oracle, runs_c=False))
    plan = Plan(3, ("planted",), 3)
    work(tmp_path, plan, range(1), 5.0)
    (kept,) = Directory(tmp_path, plan.facts).found()
    assert kept["kind"].startswith("other bits ") and not kept["flaky"]
