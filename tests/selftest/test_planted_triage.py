"""Triage finds planted bugs, and nothing where there is none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import hlo
from fuzz.campaign.directory import Directory
from fuzz.campaign.subject import whole
from hlo_oracle.triage.inputs import inputs
from hlo_oracle.triage.subject import Triage
from selftest.injection.planted import PLANTED, Planted, bugs
from selftest.planted_triage import PlantedTriage, effective, table

_X = np.array([3, 1, 2, 5], np.float32)


def _program(instruction: str, shape: str = "f32[2]") -> str:
    lines = "x = f32[4] parameter(0)", f"ROOT r = {shape} {instruction}"
    return "HloModule m\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"


_PROGRAMS = {
    "slice": _program("slice(x), slice={[0:2]}"),
    "another_slice": _program("slice(x), slice={[1:3]}"),
    "fine": _program("negate(x)", "f32[4]"),
    "at_the_edge": _program("slice(x), slice={[0:4]}", "f32[4]"),  # where the bug cannot be
}


def test_no_opcode_has_two_bugs() -> None:
    opcodes = [opcode for bug in bugs() for opcode in bug.opcodes]
    assert len(opcodes) == len(set(opcodes)) and len(bugs()) == len(PLANTED)


def test_bugs_are_where_their_opcode_is() -> None:
    run = Planted(bugs())
    (wrong,) = run(_PROGRAMS["slice"], [_X]).outputs or ()
    (right,) = run(_PROGRAMS["at_the_edge"], [_X]).outputs or ()
    assert wrong.tolist() == [1, 2] and np.array_equal(right, _X)
    found = {name: effective(hlo.parse(text), [_X]) for name, text in _PROGRAMS.items()}
    planted = ["slice: starts one later"]
    assert found == {"slice": planted, "another_slice": planted, "fine": [], "at_the_edge": []}


def test_verdicts_and_groups_are_those_of_the_bugs(tmp_path: Path) -> None:
    source = tmp_path / "programs"
    source.mkdir()
    for name, text in _PROGRAMS.items():
        (source / f"{name}.hlo").write_text(text)
        np.savez(source / f"{name}.npz", p0=_X)
    found = tuple(inputs([source], tmp_path / "unpacked"))
    subject = PlantedTriage(Triage(found, "planted", 0, None, tmp_path))
    verdicts, truth = {}, {}
    with subject.examiner(Directory(tmp_path, subject.facts)) as examiner:
        for number, one in enumerate(found):
            notes = whole(examiner.chunk(number)).notes
            verdicts[one.name] = json.loads(notes[one.name])[0]
            truth[one.name] = json.loads(notes[f"bugs of {one.name}"])
    wrong = {name for name, verdict in verdicts.items() if verdict == "wrong"}
    assert wrong == {"slice.hlo", "another_slice.hlo"} == {x for x in truth if truth[x]}
    rows = list(table(truth, verdicts, ["slice(f32) -> f32", "add(f32, f32) -> f32"]))
    assert "| slice: starts one later | 2 | 2 | 0 | 0 | 0 | 1 |" in rows
    assert rows[-1] == "| none | 2 | 0 | 0 | 2 | 0 | 1 |"
