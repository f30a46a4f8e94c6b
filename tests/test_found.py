"""docs/found is true: the expected results in its reports are the interpreter's, and its script
shows the failures without this project."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from conftest import ROOT

import hlo
import interp
from fuzz.report import folder
from hlo.bit_equality import differences
from hlo.values import arrays_of

FOUND = ROOT / "docs" / "found"
REPORTS = sorted(path.parent for path in FOUND.rglob("expected.npz"))
SCRIPT = FOUND / "reproduce.py"
README = (FOUND / "README.md").read_text()


@pytest.mark.parametrize("report", REPORTS, ids=lambda path: path.relative_to(FOUND).as_posix())
def test_a_report(report: Path) -> None:
    facts = json.loads((report / "facts.json").read_text())
    module = hlo.parse((report / "reduced.hlo").read_text())
    with np.load(report / "arguments.npz") as arrays, np.load(report / "expected.npz") as expected:
        types = [np.dtype(getattr(ml_dtypes, name, name)) for name in facts["arguments"]]
        given = [arrays[f"p{n}"].view(dtype) for n, dtype in enumerate(types)]
        result = interp.evaluate(module, *given)
        for n, output in enumerate(arrays_of(result)):
            if facts["kind"] == "wrong result":
                assert not differences(output, expected[f"exact{n}"].view(output.dtype))
    name = report.relative_to(FOUND).as_posix()
    assert f"({name}/issue.md)" in README
    assert hlo.format(module).strip() in (report / "issue.md").read_text()
    command = f"`python docs/found/{SCRIPT.name} {name}`"
    assert command in (report / "issue.md").read_text()


def test_the_script_is_the_one_of_a_report() -> None:
    script = Path(folder.__file__).with_name("reproduce.txt").read_text()
    assert SCRIPT.read_text() == script
    assert [path.name for path in FOUND.rglob("*.py")] == [SCRIPT.name]


def reproduced(script: Path, *names: str) -> subprocess.CompletedProcess[str]:
    """The script's own process, which cannot import this project."""
    return subprocess.run(
        [sys.executable, script, *names],
        capture_output=True,
        text=True,
        cwd=script.anchor,
        env={**os.environ, "PYTHONPATH": ""},
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("popcnt_of_s4", "still wrong"),
        ("acos_of_f6", "XLA ends: -6"),
        ("division_by_a_large_number/at_run_time", "still wrong"),
        ("lu_of_large_numbers", "still wrong"),
        ("invalid_programs_that_end_xla", "send_without_token.hlo: XLA ends: -11"),
    ],
)
def test_the_script_shows_what_was_found(name: str, said: str) -> None:
    jaxlib = pytest.importorskip("jaxlib")
    done = reproduced(SCRIPT, name)
    versions = json.loads((FOUND / name / "facts.json").read_text())["versions"]
    if jaxlib.__version__ == versions["jaxlib"]:
        assert done.returncode == 1, done.stderr
        assert done.stdout.splitlines()[-1] == said
    else:  # another XLA may be right
        assert done.returncode in (0, 1), done.stderr


def test_the_script_asks_for_a_name() -> None:
    for names in ((), ("no_such_report",)):
        done = reproduced(SCRIPT, *names)
        assert done.returncode == 2 and "is no report" in done.stderr
        assert REPORTS[0].name in done.stderr


def test_a_crash_that_is_mended_is_right(tmp_path: Path) -> None:
    """A program that XLA no longer ends on has no expected results to be compared with."""
    pytest.importorskip("jaxlib")
    for name in ("facts.json", "arguments.npz", "expected.npz"):
        shutil.copy(FOUND / "acos_of_f6" / name, tmp_path)
    text = (FOUND / "acos_of_f6" / "reduced.hlo").read_text()
    (tmp_path / "reduced.hlo").write_text(text.replace("f6e3m2fn", "f32").replace("acos", "tanh"))
    shutil.copy(SCRIPT, tmp_path)
    done = reproduced(tmp_path / SCRIPT.name)
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr
