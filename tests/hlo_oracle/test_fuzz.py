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
