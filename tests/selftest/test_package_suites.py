"""The command that runs the suites of packages, on a package with two small test files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

from hlo.errors import Error
from selftest.package_suites import __main__ as package_suites
from selftest.package_suites.files import suite
from selftest.package_suites.platforms import ENDED, STOPPED, FileRun
from selftest.scoring.outcomes import FAILED, PASSED

JAX_TEST = """
import jax

def test_sum():
    assert jax.jit(lambda x: x + 1)(2) == 3

def test_platform():
    assert jax.devices()[0].platform == "cpu"

def test_cpu_by_name():
    assert jax.devices("cpu")
"""

CRASHES_TEST = """
import os, pytest

IS_CPU = os.environ["JAX_PLATFORMS"] == "cpu"

def test_crash():
    IS_CPU or os.abort()

def test_after_it():
    pass

def test_refused():
    assert IS_CPU, "UNIMPLEMENTED: no C for it"

def test_everywhere():
    assert False

def test_nowhere():
    pytest.skip("no such thing")
"""

LOST_TEST = """
import os

assert os.environ["JAX_PLATFORMS"] == "cpu", "no such platform"

def test_it():
    pass
"""

HANG_TEST = """
import time

def test_before_it():
    pass

def test_hang():
    time.sleep(600)

def test_after_it():
    pass
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "packages" / "fake_package" / "inner"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "crashes_test.py").write_text(CRASHES_TEST)
    (folder / "test_lost.py").write_text(LOST_TEST)
    (folder / "test_import.py").write_text("import no_such_module")
    return folder


def _told(package: Path, *words: str) -> tuple[dict[str, Any], int]:
    path = os.pathsep.join([str(ROOT), str(package.parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "selftest.package_suites", "fake_package", "--json", *words]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout), done.returncode


def test_what_fails_here_alone_is_told(package: Path, tmp_path: Path) -> None:
    pytest.importorskip("jax")
    (package / "jax_test.py").write_text(JAX_TEST)
    state = ("--state", str(tmp_path / "state"))
    told, status = _told(package, *state)
    (row,) = told["rows"]
    wanted = {"all_files": 4, "files": 3, "run": 8, "passed": 7, "on_both": 3, "beside": 1}
    assert {**row, **wanted, "failed": 2, "refused": 1, "skipped": 0, "left": 1} == row
    reasons = {case["name"]: case["why"] for case in told["cases"]}
    assert reasons["test_crash"] == "killed by SIGABRT"
    assert "UNIMPLEMENTED" in reasons["test_refused"]
    assert "hlo_oracle" in reasons["test_platform"]
    assert "no such platform" in reasons[""]  # of a file
    assert (len(reasons), status) == (4, 1)
    (package / "jax_test.py").write_text("assert False, 'nothing runs again'")
    assert _told(package, *state) == (told, status)


def test_tests_after_one_that_hangs_go_on(tmp_path: Path) -> None:
    file = tmp_path / "hang_test.py"
    file.write_text(HANG_TEST)
    run = FileRun("hang_test.py", file, "cpu", "fast", seconds=0.5, file_seconds=60)
    found = [(one.name, one.status, one.why) for one in run.outcomes()]
    assert found == [
        ("test_before_it", PASSED, ""),
        ("test_hang", FAILED, "no answer in 0.5 s"),
        ("test_after_it", PASSED, ""),
        ("", ENDED, ""),
    ]
    ended = FileRun("hang_test.py", file, "cpu", "fast", seconds=600, file_seconds=3)
    assert [one.status for one in ended.outcomes()] == [PASSED, STOPPED]


def test_time_that_is_over_starts_nothing(package: Path) -> None:
    pytest.importorskip("jax")
    told, status = _told(package, "--minutes", "0")
    assert (told["rows"][0]["run"], told["cases"], status) == (0, [], 0)


def test_a_missing_package_is_named() -> None:
    with pytest.raises(Error, match="pip install no_such_package"):
        suite("no_such_package")
    with pytest.raises(Error, match="not installed"):
        suite("../escape")
    with pytest.raises(Error, match="without test files"):
        suite("this")


def test_the_command_says_what_to_install() -> None:
    pytest.importorskip("jax")
    with pytest.raises(Error, match="pip install no_such_package"):
        package_suites.main(["no_such_package"])
