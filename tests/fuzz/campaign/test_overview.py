"""Check summaries of campaigns and reports that are read from their directories."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

from fuzz.campaign import findings
from fuzz.campaign.directory import Directory
from fuzz.campaign.overview import overview
from fuzz.campaign.subject import Chunk, Finding
from hlo.errors import ArgumentError
from hlo_oracle.command.main import main

BEGIN = 1_000_000_000  # seconds of the file system's clock


def written(folder: Path) -> None:
    (folder / "reduced.hlo").write_text("HloModule <b>\n")


def campaign(path: Path) -> Directory:
    """A campaign that found something after a minute, and again, and finished two chunks."""
    directory = Directory(path, {"seed": 7, "oracles": ["xla", "twice"], "size": 2})
    os.utime(path / "campaign.json", (BEGIN, BEGIN))
    for number, seconds in ((1, 50), (0, 130)):
        outcomes = {"counts": Counter(programs=2, **{"xla: holds": 2})}
        directory.done(number, Chunk({**outcomes, "coverage": Counter({"add f32": 3})}))
        os.utime(path / "chunks" / f"{number:06}.json", (BEGIN + seconds, BEGIN + seconds))
    facts = {"instructions": 3}
    finding = Finding("crash: a.cc", "SIGABRT", frozenset(["add"]), written, facts, "add")
    for _ in range(2):
        folder = findings.keep(directory.findings, "xla", finding, findings.Origin(7, 0, 1))
    os.utime(folder / "reduced.hlo", (BEGIN + 60, BEGIN + 60))
    return directory


def test_a_campaign_is_summarised(tmp_path: Path) -> None:
    campaign(tmp_path)
    seen = overview([tmp_path])
    (one,), (found,) = seen.campaigns, seen.found
    assert one.facts == {"seed": "7", "oracles": "xla, twice", "size": "2"}
    assert one.counts == {"programs": 4, "xla: holds": 4} and one.coverage == {"add f32": 6}
    assert one.growth == [(0.0, 0, 0), (50.0, 2, 0), (60.0, 2, 1), (130.0, 4, 1)]
    assert (found.oracle, found.times, found.seconds, found.blamed) == ("xla", 2, 60.0, "add")
    assert found.program == "HloModule <b>\n" and found.facts["instructions"] == "3"


def test_a_long_campaign_has_a_curve_of_few_points(tmp_path: Path) -> None:
    directory = campaign(tmp_path)
    for number in range(2, 902):
        directory.done(number, Chunk({"counts": Counter(programs=2)}))
        time = BEGIN + 200 + number
        os.utime(tmp_path / "chunks" / f"{number:06}.json", (time, time))
    (one,) = overview([tmp_path]).campaigns
    assert len(one.growth) <= 301 and list(one.growth) == sorted(one.growth)
    assert one.growth[-1] == (1101.0, 2 * 902, 1)


def test_reports_are_read_in_their_folder_and_one_by_one() -> None:
    folder = ROOT / "docs" / "found"
    reports = {path.parent.name for path in folder.glob("*/facts.json")}
    seen = overview([folder])
    assert {Path(one.directory).name for one in seen.found} == reports
    (one,) = overview([folder / "popcnt_of_s4"]).found
    assert one.wrong and one.kind == "wrong result" and "popcnt" in one.program
    assert one.detail.startswith("XLA:CPU") and one.issue.startswith("# XLA:CPU")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("campaign.json", "[1]", "is no object of JSON"),
        ("facts.json", "{", "facts.json: "),
        ("facts.json", "[" * 10**6, "facts.json: "),
        ("facts.json", '{"versions": 3}', "is of no report"),
        ("facts.json", '{"versions": {}, "wrong": [{}]}', "is of no report"),
        ("other.json", "{}", "is neither a campaign"),
    ],
)
def test_what_is_neither_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ArgumentError, match=message):
        overview([tmp_path])
    assert main(["index", str(tmp_path), "-o", str(tmp_path / "x.html")]) == 2
    assert capsys.readouterr().err.count("\n") == 1 and not (tmp_path / "x.html").exists()


@pytest.mark.parametrize(
    "kept", [{}, {"oracle": "x", "kind": "k", "times": "many"}, {"times": float("inf")}]
)
def test_a_damaged_finding_is_named(tmp_path: Path, kept: dict[str, Any]) -> None:
    campaign(tmp_path)
    (path,) = (tmp_path / "findings").glob(f"*/{findings.FILE}")
    path.write_text(
        json.dumps({**(json.loads(path.read_text()) if "times" in kept else {}), **kept})
    )
    with pytest.raises(ArgumentError, match=r"finding\.json is no finding"):
        overview([tmp_path])


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"counts": 5}', '{"counts": {"programs": "x"}}', '{"notes": 1}', "[" * 10**6],
)
def test_a_damaged_chunk_is_named(tmp_path: Path, text: str) -> None:
    campaign(tmp_path)
    (tmp_path / "chunks" / "000001.json").write_text(text)
    with pytest.raises(ArgumentError, match=r"000001\.json is no result of a chunk"):
        overview([tmp_path])


def test_a_campaign_is_only_read(tmp_path: Path) -> None:
    (tmp_path / "campaign.json").write_text('{"seed": 1}')
    assert overview([tmp_path]).campaigns[0].counts == {}
    assert [path.name for path in tmp_path.iterdir()] == ["campaign.json"]
    (tmp_path / "chunks").mkdir()
    (tmp_path / "chunks" / "x.json").write_text("another's")
    assert overview([tmp_path]).campaigns[0].counts == {}


def test_the_command_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    campaign(tmp_path / "a")
    page, reports = tmp_path / "index.html", str(ROOT / "docs" / "found" / "popcnt_of_s4")
    assert main(["index", str(tmp_path / "a"), reports, "-o", str(page), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "file": str(page),
        "campaigns": 1,
        "findings": 2,
    }
    text = page.read_text()
    assert "<b>" not in text and "HloModule \\u003cb\\u003e" in text
