"""Progress on standard error: off a terminal only if it is asked for, and plain."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_oracle.command.main import main
from hlo_oracle.progress_line import ProgressLine, times

ADD = """HloModule add
ENTRY main {
  x = f32[3] parameter(0)
  ROOT sum = f32[3] add(x, x)
}
"""


@pytest.fixture
def add(tmp_path: Path) -> str:
    path = tmp_path / "add.hlo"
    path.write_text(ADD)
    return str(path)


@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["run", "--profile"],
        ["check", "--no-c"],
        ["reduce", "--while", "true", "--workers", "1", "-o", "small.hlo"],
    ],
    ids=" ".join,
)
def test_phases_are_lines_if_asked_for(
    words: list[str],
    add: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(Path(add).parent)
    command = [words[0], add, *words[1:]]
    assert main(command) == 0
    assert capsys.readouterr().err == ""
    assert main([*command, "--progress", "plain"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines and all(line.startswith("hlo: ") for line in lines)
    assert not any("\x1b" in line for line in lines)
    assert main([*command, "--progress", "plain", "-q"]) == 0
    assert capsys.readouterr().err == ""


def test_plain_lines_are_of_phases_and_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    line = ProgressLine("plain")
    with line.phase("the \x1b[31mfirst"):
        line.show("within ten seconds")
    with line.phase("the second"):
        pass
    assert capsys.readouterr().err == "hlo: the \\x1b[31mfirst\nhlo: the second\n"
    assert not ProgressLine("none").is_shown and not ProgressLine("auto").is_shown


@pytest.mark.parametrize(
    ("gone", "share", "text"),
    [
        (0.5, 0.0, ""),
        (30.0, 0.0, ", 30 s"),
        (30.0, 0.25, ", 30 s, about 1 min 30 s left"),
        (600.0, 0.1, ", 10 min 0 s, about 1 h 30 min left"),
    ],
)
def test_what_is_left_follows_from_the_share(gone: float, share: float, text: str) -> None:
    assert times(gone, share) == text
