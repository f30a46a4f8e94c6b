"""``hlo check``: rows, verdicts and exit status."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from hlo_oracle import own_process
from hlo_oracle.command.main import main
from hlo_oracle.measurement import Job, measured

HALF = """HloModule half
ENTRY main {
  x = f32[4] parameter(0)
  two = f32[] constant(2)
  both = f32[4] broadcast(two), dimensions={}
  ROOT half = f32[4] divide(x, both)
}
"""
SAME = HALF.replace("constant(2)", "constant(0.5)").replace("divide", "multiply")
RECIPE = {
    "half": {
        "seed": 1,
        "arguments": [["full", [4], "float32", 3]],
        "outputs": [{"shape": [4], "dtype": "float32", "sum": 6.0, "abs_sum": 6.0}],
    }
}


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    (tmp_path / "half.hlo").write_text(HALF)
    (tmp_path / "half.optimized.hlo").write_text(SAME)
    (tmp_path / "arguments.json").write_text(json.dumps(RECIPE))
    (tmp_path / "notes.md").write_text("not a program")
    return tmp_path


def test_a_directory_is_a_row_for_each_program(
    programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--no-c", "--same", str(programs)]) == 0
    head, *rows, same, count = capsys.readouterr().out.splitlines()
    assert head.split() == ["instructions", "parse", "interp", "compile", "C", "memory", "verdict"]
    assert [row.split()[0] for row in rows] == ["half.hlo", "half.optimized.hlo"]
    assert all(row.endswith("1 output, C not run") for row in rows)
    assert same == "half.hlo and half.optimized.hlo: elements 4 equal"
    assert count == "1 pair of files: 1 equal"


def test_c_is_compared(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(programs / "half.hlo"), "--threads", "2"]) == 0
    row = capsys.readouterr().out.splitlines()[1]
    assert re.fullmatch(r"half\.hlo +4( +[0-9.]+ m?s){4} +\d+ MiB  1 output equal", row), row


def test_rows_as_json(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--no-c", "--json", str(programs)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["status"] for row in rows] == [0, 0]
    assert rows[0]["instructions"] == 4 and rows[0]["memory"] > 0


def test_sums_that_are_not_as_recorded(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = json.loads(json.dumps(RECIPE))
    wrong["half"]["outputs"][0]["sum"] = 6.01
    (programs / "wrong.json").write_text(json.dumps(wrong))
    file, recipe = str(programs / "half.hlo"), str(programs / "wrong.json")
    assert main(["check", "--no-c", file, "--recipe", recipe]) == 1
    assert "the sum is 6.0, recorded is 6.01" in capsys.readouterr().out


def test_bad_input_is_a_row_and_the_others_go_on(
    programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (programs / "bad.hlo").write_text("HloModule bad\nENTRY main {\n")
    assert main(["check", "--no-c", str(programs)]) == 2
    said = capsys.readouterr()
    assert "not checked" in said.out and "bad.hlo:" in said.out and said.out.count("C not run") == 2
    assert "Traceback" not in said.out + said.err


def test_no_compiler_is_bad_input(
    programs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HLO_CC", "/nonexistent")
    assert main(["check", str(programs / "half.hlo"), "--json"]) == 2
    row = json.loads(capsys.readouterr().out)
    assert "/nonexistent" in row["error"] and row["outputs"] == ["float32[4]"]


def test_a_missing_file_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--no-c", "nowhere.hlo"]) == 2
    assert "nowhere.hlo" in capsys.readouterr().out


def test_an_empty_directory_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(tmp_path)]) == 2
    assert "no *.hlo" in capsys.readouterr().err


def test_a_crash_is_a_row(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (programs / "aborting.py").write_text("import os\n\ndef answer(question):\n    os.abort()\n")
    monkeypatch.syspath_prepend(programs)
    asked = own_process.asked
    monkeypatch.setattr(own_process, "asked", lambda _, question: asked("aborting", question))
    row = measured(Job(str(programs / "half.hlo"), None, 0, None, False, None))
    assert row.crash == "killed by SIGABRT" and row.status == 1


def test_arguments_are_matched_to_parameters_by_shape(tmp_path: Path) -> None:
    """A frontend that drops unused parameters leaves recipes with more arguments."""
    import hlo
    from hlo_oracle.arguments import find_recipe, from_recipe

    path = tmp_path / "half.hlo"
    path.write_text(HALF)
    more = [["full", [3], "float32", 1], ["full", [4], "int32", 2], ["full", [4], "float32", 3]]
    recipes = {"half": {"seed": 0, "arguments": more}}
    (tmp_path / "arguments.json").write_text(json.dumps(recipes))
    recipe = find_recipe(path, str(tmp_path / "arguments.json"))
    assert recipe is not None
    (array,) = from_recipe(hlo.parse(HALF), recipe)
    assert array.dtype == np.float32 and array.tolist() == [3] * 4


def test_nothing_that_a_terminal_obeys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "\x1b[2J.hlo").write_text("HloModule bad\nENTRY \x1b[31m {\n")
    assert main(["check", "--no-c", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert all(char.isprintable() or char == "\n" for char in said.out + said.err)
    assert "\\x1b[2J.hlo" in said.out and "\\x1b[31m" in said.out
