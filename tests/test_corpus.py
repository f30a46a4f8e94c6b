"""Every program of the corpus: parsed, verified, interpreted, compiled to C, equal bit by bit.

The sums that another compiler computed agree to f32 precision (hlo check finds arguments.json), and
each program's text before that compiler's optimisation means the same as its text after it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import CORPUS, has_c_compiler

PROGRAMS = sorted({(path.parent.name, path.name.split(".")[0]) for path in CORPUS.glob("*/*.txt")})
# Programs with a constant that their printer elided, and a value for it.
ELIDED = {"misc": "{{9, 1, 2, 0}, {1, 8, 0, 3}, {2, 0, 7, 1}, {0, 3, 1, 6}}"}
# The optimiser turned the generator of legacy random numbers into another one.
DIFFERENT = {"random_normal"}


def check(files: list[Path], *options: str) -> tuple[int, list[dict[str, object]], str]:
    """Exit status, rows and all output of hlo check."""
    command = [sys.executable, "-m", "hlo_oracle.command.main", "check", "--json", *options]
    done = subprocess.run(
        [*command, *map(str, files)], capture_output=True, text=True, check=False, timeout=1500
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, rows, done.stdout + done.stderr


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize(("frontend", "name"), PROGRAMS, ids=lambda part: part)
def test_program(frontend: str, name: str, tmp_path: Path) -> None:
    files = sorted((CORPUS / frontend).glob(f"{name}.*.txt"))
    if name in ELIDED:
        files = [filled(path, tmp_path) for path in files]
    status, rows, output = check(files, *([] if name in DIFFERENT else ["--same"]))
    assert status == 0, output
    assert len(rows) >= len(files)


def filled(path: Path, directory: Path) -> Path:
    """A copy of the program with its elided constant written out."""
    value = ELIDED[path.name.split(".")[0]]
    copy = directory / path.name
    copy.write_text(path.read_text().replace("{...}", value))
    return copy


@pytest.mark.parametrize("name", ELIDED)
def test_an_elided_constant_is_bad_input(name: str) -> None:
    status, _, output = check(sorted((CORPUS / "tensorflow").glob(f"{name}.*.txt")))
    assert status == 2
    assert "print_large_constants" in output
