"""A compiler that refuses everything, as a command that is spelt wrongly: nothing is judged."""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path

import pytest

from fuzz.campaign.directory import Directory
from hlo.errors import ArgumentError
from hlo_oracle.command.main import main

ADD = """HloModule add
ENTRY main {
  x = f32[3] parameter(0)
  ROOT sum = f32[3] add(x, x)
}
"""
pytestmark = pytest.mark.skipif(shutil.which("false") is None, reason="no command false")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "add.hlo").write_text(ADD)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("check add.hlo --no-c", "hlo: nothing was judged: exit status 1"),
        ("report add.hlo", "hlo: add.hlo: false does not take it: exit status 1"),
        ("reduce add.hlo", "hlo: add.hlo: false does not take it: exit status 1"),
        (
            "triage add.hlo --workers 0 --state s",
            "hlo: nothing was judged: 1 program: 1 refused; add.hlo: exit status 1",
        ),
        (
            "fuzz --programs 1 --corpus s",  # a size above the bound: it is not run
            "hlo: nothing was judged: all programs were left out (the first: %loose.2: a size of 12"
            " for a bound of 3)",
        ),
        (
            "fuzz --programs 4 --corpus s",
            "hlo: nothing was judged: all programs were left out (the first: exit status 1)",
        ),
        (
            "fuzz --minutes 0 --corpus s",
            "hlo: nothing was judged: time was up before any program was",
        ),
    ],
)
def test_a_command_that_always_fails(
    words: str, said: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words.split(), "--against", "false"]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == said


def test_what_a_compiler_that_refuses_says_first_is_told(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once, shortened, with no more than what can be printed, and how often it refused."""
    (place / "no.sh").write_text("printf 'no \\033[31mlicence %0300d' 7 >&2; exit 3")
    words = ["fuzz", "--programs", "50", "--against", "sh no.sh", "--progress", "plain"]
    assert main([*words, "--corpus", "s"]) == 2
    told = capsys.readouterr()
    said = f"no \\x1b[31mlicence {'0' * 184}"
    assert re.search(
        rf"  sh no.sh: left out, refused: 4\d \(the first: {re.escape(said)}\)\n", told.out
    )
    assert told.err.endswith(f"all programs were left out (the first: {said})\n")
    assert main([*words, "--corpus", "s", "--json"]) == 2  # from what was kept
    found = json.loads(capsys.readouterr().out)
    assert found["said_first"]["sh no.sh: left out, refused"] == said
    left_out = {name: n for name, n in found["counts"].items() if ": left out, " in name}
    assert sum(left_out.values()) == 50 and len(left_out) == 2


def test_json_of_a_report_that_has_nothing_to_judge(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "add.hlo", "--against", "false", "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert told["reason"] == "false does not take it: exit status 1" and told["kind"] is None


@pytest.mark.parametrize(
    ("words", "written"),
    [
        ("check - --no-c", []),
        ("reduce - --while true", ["stdin.reduced.hlo", "stdin.reduced.npz"]),
    ],
)
def test_a_program_of_standard_input(
    words: str, written: list[str], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(ADD.encode())))
    before = set(place.iterdir())
    assert main(words.split()) == 0
    assert sorted(path.name for path in set(place.iterdir()) - before) == written


def test_a_report_of_standard_input_has_its_text(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash = place / "crash.sh"
    crash.write_text("kill -SEGV $$")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(ADD.encode())))
    assert main(["report", "-", "--against", f"sh {crash}", "--seconds", "1"]) == 1
    assert (place / "stdin.report" / "original.hlo").read_text() == ADD


def test_campaigns_are_told_apart_in_words(tmp_path: Path) -> None:
    Directory(tmp_path, {"seed": 1, "oracles": ("a",)})
    with pytest.raises(ArgumentError) as caught:
        Directory(tmp_path, {"seed": 2, "oracles": ("b",), "campaign": "triage"})
    said = "is of another campaign: campaign None, not triage; other oracles; seed 1, not 2"
    assert str(caught.value) == f"{tmp_path} {said}"
    (tmp_path / "campaign.json").write_text("[")
    with pytest.raises(ArgumentError, match=r"campaign.json: not the facts of a campaign"):
        Directory(tmp_path, {})
