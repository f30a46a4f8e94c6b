"""Many programs at once: judged, reduced, and grouped by what the compiler gets wrong."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT

from hlo_oracle.command.main import main
from hlo_oracle.triage.inputs import inputs

pytest.importorskip("jaxlib")
FOUND = ROOT / "docs" / "found"
FINE = "HloModule m\nENTRY e { x = f32[4] parameter(0)\n ROOT y = f32[4] sine(x) }\n"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two programs with the same bug, one without a bug, one with wrong arguments, and a file
    that is no program."""
    directory = tmp_path_factory.mktemp("programs")
    text = (FOUND / "abs_of_a_square" / "reduced.hlo").read_text()
    (directory / "deep").mkdir()
    for name in ("one", "deep/two"):
        (directory / f"{name}.hlo").write_text(text)
        shutil.copy(FOUND / "abs_of_a_square" / "arguments.npz", directory / f"{name}.npz")
    (directory / "fine.txt").write_text(FINE)
    (directory / "readme.txt").write_text("# no program")
    (directory / "wrong_arguments.hlo").write_text(FINE)
    np.savez(directory / "wrong_arguments.npz", x=np.float32(1))
    return directory


def triaged(paths: list[Path], state: Path, capsys: Any) -> tuple[int, dict[str, Any]]:
    words = ["triage", *map(str, paths), "--state", str(state), "--reduce", "5", "--workers", "0"]
    status = main([*words, "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_programs_are_judged_and_grouped(
    programs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, found = triaged([programs], tmp_path / "state", capsys)
    assert status == 1
    counted = {what: count for what, count in found["counts"].items() if count}
    assert counted == {"programs": 5, "legal": 1, "wrong": 2, "not read": 2}
    (group,) = found["groups"]
    assert group["files"] == ["deep/two.hlo", "one.hlo"] and group["times"] == 2
    assert group["gone_without"] == ["algsimp"]
    verdicts = found["programs"]
    assert verdicts["fine.txt"][0] == "legal"
    assert "expected HloModule" in verdicts["readme.txt"][1]
    assert "expected f32[4], got float32[]" in verdicts["wrong_arguments.hlo"][1]
    page = (tmp_path / "state" / "triage.md").read_text()
    assert "| one.hlo | wrong | " in page and "| 2 | wrong result: another number |" in page
    assert (tmp_path / "state" / "findings" / group["folder"] / "report" / "issue.md").is_file()
    # The same command has nothing left to do, and says the same.
    again = triaged([programs], tmp_path / "state", capsys)
    assert again == (1, found)


def test_archives_are_unpacked_below_the_directory(tmp_path: Path) -> None:
    archive = tmp_path / "ir.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        for name in ("../../up.hlo", "/root.hlo", "a/b.hlo", "a/b.npz", "a/notes.md"):
            opened.writestr(name, FINE)
    found = inputs([archive], tmp_path / "state" / "unpacked")
    assert [one.name for one in found] == ["a/b.hlo", "root.hlo", "up.hlo"]
    assert found[0].arguments is not None and found[1].arguments is None
    below = {path.name for path in (tmp_path / "state").rglob("*") if path.is_file()}
    assert below == {"b.hlo", "b.npz", "root.hlo", "up.hlo", ".done"}
    assert {path.name for path in tmp_path.iterdir()} == {"ir.zip", "state"}


def test_programs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for directory in ("a", "b"):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / "f.hlo").write_text(FINE)
    (tmp_path / "b" / "g.hlo").write_text(FINE)
    a, b = tmp_path / "a", tmp_path / "b"
    found = inputs([a, b, b / "f.hlo"], tmp_path / "unpacked")
    assert [one.name for one in found] == [str(a / "f.hlo"), str(b / "f.hlo"), "g.hlo"]


def test_what_cannot_be_evaluated_here_is_no_fault_of_the_compiler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "HloModule m\nENTRY e { c = f32[4] constant({...})\n ROOT y = f32[4] sine(c) }\n"
    (tmp_path / "m.hlo").write_text(text)
    status, found = triaged([tmp_path / "m.hlo"], tmp_path / "state", capsys)
    assert (status, found["groups"]) == (2, [])
    verdict, why = found["programs"]["m.hlo"]
    assert verdict == "not read" and "was left out of the text" in why
    words = ["--state", str(tmp_path / "filled"), "--workers", "0", "--elided", "zeros"]
    assert main(["triage", str(tmp_path / "m.hlo"), *words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["programs"]["m.hlo"]
    assert told[0] == "legal" and "filled in with zeros" in told[1]


def test_a_program_of_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):  # the second time it is known
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(FINE.encode())))
        status, found = triaged([Path("-")], tmp_path / "state", capsys)
        assert status == 0 and found["programs"] == {"stdin": ["legal", "4 equal"]}


def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "damaged.zip").write_bytes(b"PK\x03\x04")
    damaged = tmp_path / "cut.zip"
    with zipfile.ZipFile(damaged, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("a.hlo", FINE * 40)
    data = bytearray(damaged.read_bytes())
    data[60:80] = bytes(20)
    damaged.write_bytes(data)
    for name, said in (("empty", "no *.hlo, *.txt"), ("cut.zip", "a damaged archive")):
        command = ["triage", str(tmp_path / name), "--state", str(tmp_path / "state")]
        assert main(command) == 2
        assert said in capsys.readouterr().err


def test_a_table_for_people(
    programs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names are input: nothing of them is markup."""
    file = tmp_path / "[red]`|<b>.hlo"
    file.write_text(FINE)
    command = ["triage", str(file), "--state", str(tmp_path / "state"), "--workers", "0"]
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines() == ["1 program: 1 legal"]
    page = (tmp_path / "state" / "triage.md").read_text()
    assert "| &#91;red]&#96;&#124;&lt;b>.hlo | legal | " in page
