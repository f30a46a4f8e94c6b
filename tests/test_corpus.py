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
# The optimiser turned the generator of legacy random numbers into another one.
DIFFERENT = {"random_normal"}


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize(("frontend", "name"), PROGRAMS, ids=lambda part: part)
def test_program(frontend: str, name: str) -> None:
    files = sorted((CORPUS / frontend).glob(f"{name}.*.txt"))
    same = ["--same"] if name not in DIFFERENT else []
    command = [sys.executable, "-m", "hlo_tools.main", "check", "--json", *same, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1500)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(rows) >= len(files)
