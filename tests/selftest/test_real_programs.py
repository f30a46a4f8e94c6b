"""Programs of examples/jax: each gives on the plugin what XLA:CPU gives, and the page says so."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import ROOT, has_c_compiler

from selftest.real_programs.page import Result, largest_difference, markdown

PROGRAMS = sorted((ROOT / "examples" / "jax").glob("*.py"))
TIMES = {"first": 2.0, "least": 0.001, "processor": 0.002, "bits": [], "interpreted": []}
RUNS = {
    "hlo_oracle": {"seen": [[1.0, 10.0], [2.0, 20.0]], **TIMES},
    "cpu": {"seen": [[1.0, 10.0], [2.0, 20.5]], **TIMES},
}
RESULT = Result("one", "A program.", 2, RUNS, RUNS, True, {"cpu": "3 equal"}, [])


def packages(path: Path) -> set[str]:
    """Find the packages that a program imports, directly or by another program, besides Python's
    own."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module.partition(".")[0])
    for other in PROGRAMS:
        if other.stem in found:
            found = found - {other.stem} | packages(other)
    return found - sys.stdlib_module_names


# Those of JAX alone run in the session of test_jax_plugin.py.
@pytest.mark.parametrize(
    "path", [p for p in PROGRAMS if packages(p) != {"jax"}], ids=lambda p: p.stem
)
@pytest.mark.skipif(not has_c_compiler(), reason="compiles C")
def test_a_program_gives_what_xla_gives(path: Path) -> None:
    for package in sorted(packages(path)):
        pytest.importorskip(package)
    environ = {"JAX_PLATFORMS": "hlo_oracle,cpu", "HLO_ORACLE_MODE": "fast"}
    words = ["-W", "ignore", "-m", "selftest.real_programs.session", path.stem, "2", "run"]
    environ = {**os.environ, **environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *words], env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    difference = largest_difference(json.loads(done.stdout.splitlines()[-1]))
    assert difference is not None and difference < 1e-3


def test_differences_are_relative_to_the_largest_number_of_a_column() -> None:
    assert largest_difference(RUNS) == 0.5 / 20.5
    assert largest_difference({}) is None


def test_the_page_tells_what_failed_and_what_was_interpreted() -> None:
    interpreted = {**RUNS, "hlo_oracle": {**RUNS["hlo_oracle"], "interpreted": ["f: no C"]}}
    wrong = replace(RESULT, name="two", fast=interpreted, same_bits=False, faults=["exact: died"])
    text = markdown([RESULT, wrong])
    assert "| one: A program. | 2 | 2.4e-02 | 2.4e-02 | same bits |" in text
    assert "| two: A program. | 2 | 2.4e-02 | 2.4e-02 | DIFFERENT |" in text
    assert "| one | 2.0 s | 2.0 s | 1.00 ms (2.00) | 1.00 ms (2.00) |" in text
    assert "* two: f: no C" in text and "* two: exact: died" in text and "3 equal" in text
