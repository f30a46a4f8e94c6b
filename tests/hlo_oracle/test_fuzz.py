"""``hlo fuzz`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlo_oracle.command.main import main


def test_the_oracles_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuzz", "--list"]) == 0
    assert "interpreter and C give the same bits" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--oracle", "no-such"], "one of same-bits"),
        (["--against", "no-such-command"], "neither xla nor a command"),
        (["--workers", "0"], "at least 1"),
        (["--near", "no-such.hlo"], "there is no such file"),
        (["--near", str(Path(__file__).parent / "loading")], "no file *.hlo"),
    ],
)
def test_bad_options(options: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuzz", *options]) == 2
    assert told in capsys.readouterr().err


def test_a_command_that_is_wrong_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends at every program that it is asked for: a few mean nothing, or have no result."""
    words = ["fuzz", "--against", "sh -c 'kill -ABRT $$'", "--corpus", str(tmp_path / "c")]
    words += ["--programs", "50", "--reduce", "0.1", "--json"]
    assert main(words) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["counts"]["programs"] == 50
    assert {finding["kind"] for finding in told["findings"]} == {"crash: SIGABRT"}
    violated = sum(n for name, n in told["counts"].items() if name.endswith(": violated"))
    assert sum(finding["times"] for finding in told["findings"]) >= violated > 40
    issues = [path.read_text() for path in (tmp_path / "c").glob("findings/*/report/issue.md")]
    assert len(issues) == len(told["findings"]) and "SIGABRT" in issues[0]
    assert "--against 'sh -c " in issues[0] and "reproduce.py" not in issues[0]
    assert not list((tmp_path / "c").rglob("reproduce.py"))  # that is of XLA
    assert main(words) == 1  # nothing is left to do
    assert json.loads(capsys.readouterr().out)["counts"] == told["counts"]


def test_near_misses_of_a_given_program_are_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "given.hlo").write_text(
        "HloModule g  ENTRY e { p = f32[5] parameter(0)  s = f32[5] sine(p)"
        "  ROOT r = f32[5] add(s, p) }"
    )
    words = ["fuzz", "--near", str(tmp_path), "--corpus", str(tmp_path / "c"), "--json"]
    assert main([*words, "--oracle", "printed", "--programs", "50"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["counts"]["printed: holds"] == told["counts"]["programs"] == 50


def test_a_given_program_of_tokens_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "given.hlo"
    file.write_text("HloModule g  ENTRY e { p = token[] parameter(0)  ROOT r = token[] copy(p) }")
    assert main(["fuzz", "--near", str(file), "--corpus", str(tmp_path / "c")]) == 2
    assert "token" in capsys.readouterr().err
