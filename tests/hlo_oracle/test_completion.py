"""Completion scripts complete what the command takes."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from hlo_oracle.command.main import main, parser


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_knows_every_option_and_is_one(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = script(shell, capsys)
    for name, subcommand in parser()[1].items():
        assert name in text
        for action in subcommand._actions:
            for option in action.option_strings:
                assert option.lstrip("-") in text
    if shutil.which(shell) is not None:
        done = subprocess.run([shell, "-n"], input=text, text=True, capture_output=True)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["hlo", "fu"], ["fuzz"]),
        (["hlo", "run", "--prog"], ["--progress"]),
        (["hlo", "emit", "--target", "e"], ["embedded"]),
        (["hlo", "completion", "z"], ["zsh"]),
    ],
)
def test_bash_completes(
    words: list[str], expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    line = (
        f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _hlo; echo ${{COMPREPLY[@]}}"
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{script('bash', capsys)}\n{line}"],
        text=True,
        capture_output=True,
        cwd="/",
    )
    assert done.stdout.split() == expected


def test_every_subcommand_has_json(capsys: pytest.CaptureFixture[str]) -> None:
    for name, subcommand in parser()[1].items():
        assert any("--json" in action.option_strings for action in subcommand._actions), name
    assert main(["completion", "bash", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["shell"] == "bash"
