"""Options that would have no effect beside the others, or on this input, are errors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from hlo_oracle.command.main import main

ADD = """HloModule add
ENTRY main {
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  ROOT sum = f32[3] add(x, y)
}
"""
ROWS = [
    (
        "run add.hlo --numerics fast",
        "hlo: --numerics fast is for --on c, which is not given",
    ),
    (
        "run add.hlo --profile --values sum",
        "hlo: --profile shows times instead of --values: leave out one of them",
    ),
    (
        "run add.hlo --profile --on c --save x.npz",
        "hlo: --profile of --on c keeps no results: leave out --save",
    ),
    ("run add.hlo --cast", "hlo: --cast is for --args FILE.npz, which is not given"),
    (
        "check add.hlo --no-c --threads 2",
        "hlo: --threads are those of the C program: leave out --no-c",
    ),
    (
        "graph add.hlo -o x.html --computation main",
        "hlo: --computation is for a picture; a page shows all of them",
    ),
    ("explain add.hlo --against xla", "hlo: --against needs --html, the page that shows it"),
    ("explain add.hlo --source a.py", "hlo: --source needs --html, the page that shows it"),
    ("explain add.hlo --values", "hlo: --values needs --html, the page that shows it"),
    ("explain add.hlo --repeat 3", "hlo: --repeat needs --measure, which calls the program"),
    (
        "explain add.hlo --args good.npz --html x.html",
        "hlo: --args is for --measure, --values or --against, which is not asked for",
    ),
    (
        "emit add.hlo --seed 3 -o c",
        "hlo: --seed is for --check or --weights, which is not asked for",
    ),
    (
        "fuzz --scheduler here --workers 3",
        "hlo: --workers are those of this machine: leave out --scheduler",
    ),
    (
        "fuzz --list --programs 30",
        "hlo: --programs is for programs; --list draws none: leave one of them out",
    ),
    (
        "fuzz --list --json --corpus here",
        "hlo: --corpus is for programs; --list draws none: leave one of them out",
    ),
    (
        "opt add.hlo --html x.html -o x",
        "hlo opt: argument -o/--output: not allowed with argument --html",
    ),
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "add.hlo").write_text(ADD)
    three = np.zeros(3, np.float32)
    np.savez(tmp_path / "good.npz", x=three, y=three)
    return tmp_path


@pytest.mark.parametrize(("words", "said"), ROWS, ids=[words for words, _ in ROWS])
def test_an_option_without_an_effect(
    words: str, said: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(words.split()) == 2
    told = capsys.readouterr()
    assert told.err.splitlines()[-1] == said and not told.out
    assert sorted(path.name for path in place.iterdir()) == ["add.hlo", "good.npz"]


def test_a_budget_needs_results_to_judge(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "add.hlo", "--no-c", "--budget", "xla-gpu"]) == 2
    said = "--budget is for results to judge: --against or --results gives them"
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    ["run", "emit add.hlo -o", "run add.hlo --save", "check add.hlo --results", "fuzz --corpus"],
)
def test_a_name_of_nothing(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty name, as of a variable that is not set, is not the current directory."""
    assert status([*words.split(), ""]) == 2
    assert capsys.readouterr().err.endswith(": '' names nothing\n")


def status(words: Sequence[str]) -> int:
    """Run a command; return the exit status, also where parsing ends it."""
    try:
        return main(words)
    except SystemExit as ended:
        assert isinstance(ended.code, int)
        return ended.code
