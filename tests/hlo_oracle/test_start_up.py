"""A command imports what it needs, and no more."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import ROOT

from hlo_oracle.command.main import SUBCOMMANDS, main, subcommand

_SCRIPT = """
import sys
from hlo_oracle.command.main import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert end.code == 0
large = {"numpy", "rich", "hlo", "interp", "backend_c", "fuzz", "jax"}
print("imported:", sorted(large & set(sys.modules)))
"""


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_a_short_answer_imports_nothing_large(option: str) -> None:
    command = [sys.executable, "-c", _SCRIPT, option]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.endswith("imported: []\n"), done.stdout + done.stderr


def test_help_has_the_first_line_of_each_subcommand() -> None:
    for name, line in SUBCOMMANDS.items():
        assert (subcommand(name).__doc__ or "").startswith(f"hlo {name}: {line}\n"), name


def test_a_subcommand_has_its_own_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", "--help"])
    assert end.value.code == 0 and "--fuel N" in capsys.readouterr().out


def test_the_package_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hlo_oracle", "--version"], capture_output=True, text=True, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("hlo ")
