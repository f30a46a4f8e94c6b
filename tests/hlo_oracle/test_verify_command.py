"""``hlo verify`` and ``hlo format``: programs that are only read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from conftest import ROOT

import hlo
from hlo_oracle.command.main import main

GOOD = "HloModule m\nENTRY e {\n  x = f32[3] parameter(0)\n  ROOT r = f32[3] add(x, x)\n}\n"
BAD = {
    "type.hlo": (
        GOOD.replace("ROOT r = f32[3]", "ROOT r = f32[4]"),
        "type.hlo:4: %r = add",
    ),
    "text.hlo": (GOOD.replace("add(x, x)", "add(x, y)"), "text.hlo:4:26: operand 'y'"),
    "nothing.hlo": ("", "nothing.hlo: "),
    "bytes.hlo": ("\0\1\2", "bytes.hlo: "),
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.hlo").write_text(GOOD)
    return tmp_path


def test_valid_files(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "more").mkdir()
    shutil.copy(place / "good.hlo", place / "more")
    assert main(["verify", "good.hlo", "more", "good.hlo"]) == 0
    assert capsys.readouterr().out == "2 programs: 2 valid\n"


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_a_line(name: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, said = BAD[name]
    (place / name).write_text(text)
    assert main(["verify", "."]) == 2
    line, count = capsys.readouterr().out.splitlines()
    assert line.startswith(said) and count == "2 programs: 1 valid, 1 not"
    assert main(["verify", ".", "-v"]) == 2
    assert capsys.readouterr().out.startswith(line)


def test_a_file_that_is_missing_is_a_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "god.hlo", "good.hlo"]) == 2
    assert capsys.readouterr().out.splitlines() == [
        "god.hlo: there is no such file; did you mean good.hlo?",
        "2 programs: 1 valid, 1 not",
    ]


def test_files_as_json(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "type.hlo").write_text(BAD["type.hlo"][0])
    assert main(["verify", ".", "--json"]) == 2
    good, bad = map(json.loads, capsys.readouterr().out.splitlines())
    assert good == {"file": "good.hlo", "valid": True, "error": None, "details": []}
    assert (bad["file"], bad["valid"]) == ("type.hlo", False)
    assert bad["error"].startswith("type.hlo:4: %r = add") and bad["details"]


def test_of_a_dump_the_stages_are_read(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = place / "dump"
    dump.mkdir()
    (dump / "module_0001.m.before_optimizations.txt").write_text(GOOD)
    (dump / "module_0001.m.cpu_after_optimizations.txt").write_text(BAD["type.hlo"][0])
    (dump / "module_0001.m.cpu_after_optimizations-buffer-assignment.txt").write_text("no program")
    assert main(["verify", "dump"]) == 2
    line, count = capsys.readouterr().out.splitlines()
    assert "after_optimizations.txt:4: %r = add" in line and count == "2 programs: 1 valid, 1 not"


@pytest.mark.parametrize("dialect", ["short", "long", "canonical"])
def test_a_program_is_formatted_in_each_dialect(
    dialect: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = ROOT / "examples" / "while_loop.hlo"
    expected = hlo.format(hlo.parse(file.read_text()), dialect)
    words = ["format", str(file), "--dialect", dialect]
    assert main(words) == 0
    assert capsys.readouterr().out.rstrip("\n") == expected.rstrip("\n")
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"dialect": dialect, "text": expected}
    output = tmp_path / "out.hlo"
    assert main([*words, "-o", str(output)]) == 0
    assert output.read_text() == expected and capsys.readouterr().out == f"{output}\n"


def test_large_constants_are_left_out(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbers = ", ".join(map(str, range(12)))
    text = f"HloModule m\nENTRY e {{\n  ROOT r = s32[12] constant({{{numbers}}})\n}}\n"
    (place / "large.hlo").write_text(text)
    assert main(["format", "large.hlo", "--no-large-constants"]) == 0
    assert "constant({...})" in capsys.readouterr().out
