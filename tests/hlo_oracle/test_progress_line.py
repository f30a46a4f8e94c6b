"""Progress on standard error: off a terminal only if it is asked for, and plain."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import numpy as np
import pytest

import hlo_oracle as ho
from hlo.errors import ArgumentError
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


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_what_is_short_shows_nothing_where_that_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {}
    for after in (0.0, 1e6):
        monkeypatch.setattr("sys.stderr", terminal := Terminal())
        line = ProgressLine(after=after)
        with line.phase("short"):
            line.show("half", 0.5)
        shown[after] = terminal.getvalue()
    assert shown == {0.0: "\r\x1b[Kshort\r\x1b[K", 1e6: ""}


def test_a_stream_that_is_redirected_meanwhile_gets_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    line = ProgressLine()
    with contextlib.redirect_stderr(io.StringIO()) as other, line.phase("the first"):
        pass
    assert other.getvalue() == "" and "the first" in terminal.getvalue()


def test_a_check_shows_its_phases_if_asked(
    add: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.ones(3, np.float32)
    given = {"results": [x + x]}
    assert ho.check(add, x, **given) and capsys.readouterr() == ("", "")
    assert ho.check(add, x, **given, progress="plain")
    out, lines = capsys.readouterr()
    assert not out and lines.splitlines() == [
        "hlo: reading the program",
        "hlo: evaluating 2 instructions exactly",
        "hlo: judging the results",
    ]
    # On a terminal after some seconds, of which this takes less.
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    assert ho.check(add, x, **given) and terminal.getvalue() == ""
    monkeypatch.setattr("hlo_oracle.function_check._QUIET", 0.0)
    assert ho.check(add, x, **given) and "2 instructions exactly" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
    with pytest.raises(ArgumentError, match="progress=True: one of 'auto', 'plain', 'none'"):
        ho.check(add, x, **given, progress=True)


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
