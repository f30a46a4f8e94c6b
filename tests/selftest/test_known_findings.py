"""Findings of a campaign are told to be known bugs, in the order in which they were found."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from test_bug_signatures import failure_of

from selftest.bug_signatures import FOUND
from selftest.known_findings import main

_BEGAN = 1_000_000.0


def find(campaign: Path, bug: str, seconds: float, name: str = "", *, flaky: bool = False) -> Path:
    """Put a finding of a bug into a campaign's directory."""
    folder = campaign / "findings" / (name or bug)
    (folder / "report").mkdir(parents=True)
    program = folder / "reduced.hlo"
    shutil.copy(FOUND / bug / "reduced.hlo", program)
    shutil.copy(FOUND / bug / "facts.json", folder / "report")
    failure = failure_of(FOUND / bug / "reduced.hlo")
    kept = {
        "oracle": "xla",
        "kind": failure.kind,
        "detail": failure.detail,
        "blamed": failure.blamed,
        "opcodes": sorted(failure.opcodes),
        "flaky": flaky,
        "times": 2,
    }
    (folder / "finding.json").write_text(json.dumps(kept))
    os.utime(program, (_BEGAN + seconds,) * 2)
    return folder


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """The directory of a campaign with some findings of known bugs."""
    plan = tmp_path / "campaign.json"
    plan.write_text("{}")
    os.utime(plan, (_BEGAN,) * 2)
    find(tmp_path, "acos_of_f6", 700)
    find(tmp_path, "popcnt_of_s4", 30)
    find(tmp_path, "popcnt_of_s4", 1300, "again")
    find(tmp_path, "all_gather_of_u4", 40, flaky=True)
    return tmp_path


def test_known_bugs_are_counted(campaign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(campaign)]) == 0
    said = capsys.readouterr().out
    lines = said.splitlines()
    assert lines[0] == (
        "4 findings in 21.7 minutes: 3 are known bugs, 0 match none; 1 flaky, of which 1 match"
    )
    rows = [line.split() for line in lines]
    assert ["popcnt_of_s4", "2", "4", "30"] in rows and ["acos_of_f6", "1", "2", "700"] in rows
    assert ["minutes", "10", "20", "30"] in rows
    assert ["findings", "2", "3", "4"] in rows and ["different", "bugs", "1", "2", "2"] in rows
    assert "2 of the 55 found first; not abs_of_a_square, " in said
    assert "match no bug" not in said and "all_gather_of_u4, 40 s" in said


def test_what_is_new_is_listed(campaign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = find(campaign, "integer_power", 50)
    kept = json.loads((folder / "finding.json").read_text())
    (folder / "finding.json").write_text(json.dumps(kept | {"kind": "wrong result: NaN"}))
    assert main([str(campaign)]) == 1
    said = capsys.readouterr().out
    assert "1 findings match no bug:" in said
    assert f"- {folder}, 50 s" in said and "xla: wrong result: NaN; power(s32) -> s32" in said
    assert "opcodes power" in said and "also meets integer_power" in said


def write(program: Path, text: str, seconds: float) -> None:
    """Replace a program, and keep when it was found."""
    program.write_text(text)
    os.utime(program, (_BEGAN + seconds,) * 2)


def test_several_bugs_are_listed(campaign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = find(campaign, "quotient_of_a_quotient", 50) / "reduced.hlo"
    write(program, program.read_text().replace("(divide, p0)", "(divide, divide)"), 50)
    assert main([str(campaign)]) == 0
    said = capsys.readouterr().out
    assert "1 findings match several bugs" in said
    assert "matches quotient_by_a_quotient, quotient_of_a_quotient" in said


def test_a_long_campaign_has_few_columns(
    campaign: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    find(campaign, "integer_power", 7 * 24 * 3600)
    assert main([str(campaign)]) == 0
    (row,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("minutes"))
    assert row.split()[1:] == [str(840 * n) for n in range(1, 13)]


def test_data_has_the_same(campaign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(campaign / "findings" / "again" / "reduced.hlo", "no program", 1300)
    assert main([str(campaign), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["bugs"]["acos_of_f6"] == {"findings": 1, "times": 2, "seconds": 700.0}
    assert found["first"] == ["acos_of_f6", "popcnt_of_s4"]
    assert [one["bugs"] for one in found["findings"]][:2] == [
        ["popcnt_of_s4"],
        ["all_gather_of_u4"],
    ]
    assert found["minutes"][0] == {"minutes": 10, "findings": 2, "bugs": 1}


def test_a_directory_that_is_no_campaign_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([str(tmp_path)])
    assert "is no campaign's" in capsys.readouterr().err
