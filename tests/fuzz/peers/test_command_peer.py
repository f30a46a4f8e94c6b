"""Any command can be judged as a compiler is."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from conftest import ROOT

from fuzz.peers.command import Command
from hlo_oracle.command.main import main

_PROGRAM = """HloModule m
ENTRY e {
  x = f32[3] parameter(0)
  y = bf16[3] parameter(1)
  e = f32[3] exponential(x)
  n = bf16[3] negate(y)
  ROOT r = (f32[3], bf16[3]) tuple(e, n)
}
"""
# A compiler that interprets; what it does before it writes its results is put in.
_COMPILER = """
import os, sys, time
sys.path.insert(0, ROOT)
import numpy as np, ml_dtypes
import hlo, interp
program, arguments, results = sys.argv[1:]
module = hlo.parse(open(program).read())
with np.load(arguments) as given:
    arrays = [given[f"p{n}"] for n in range(len(given.files))]
arrays = [a.view(ml_dtypes.bfloat16) if a.dtype.kind == "V" else a for a in arrays]
found = [*interp.evaluate(module, *arrays)]
FAULT
np.savez(results, **{f"r{n}": a for n, a in enumerate(found)})
"""
_X = np.array([0, 1, 2], np.float32)
_Y = np.array([1, 2, np.nan], ml_dtypes.bfloat16)


def _words(path: Path, fault: str) -> list[str]:
    path.write_text(_COMPILER.replace("FAULT", fault).replace("ROOT", repr(str(ROOT))))
    return [sys.executable, str(path)]


def test_results_come_back_in_their_types(tmp_path: Path) -> None:
    with Command(_words(tmp_path / "compiler.py", "")) as run:
        answer = run(_PROGRAM, (_X, _Y))
    assert answer.outputs is not None
    e, n = answer.outputs
    assert e.dtype == np.float32 and n.dtype == ml_dtypes.bfloat16
    assert n.astype(np.float32)[:2].tolist() == [-1, -2] and np.isnan(n[2])


@pytest.mark.parametrize(
    ("fault", "seconds", "kind", "told"),
    [
        ("sys.exit('no room for m')", 60.0, "error", "no room for m"),
        # A process that it leaves behind has its stderr open.
        (
            "import subprocess; subprocess.Popen(['sleep', '60']); sys.exit('no')",
            5.0,
            "error",
            "no",
        ),
        ("os.abort()", 60.0, "crash", "SIGABRT"),
        ("os.kill(os.getpid(), 40)", 60.0, "crash", "signal 40"),  # of real time, without a name
        ("time.sleep(60)", 1.0, "crash", "no answer in 1 s"),
        ("sys.exit(0)", 60.0, "error", "no results"),
    ],
)
def test_what_goes_wrong_is_told(
    tmp_path: Path, fault: str, seconds: float, kind: str, told: str
) -> None:
    with Command(_words(tmp_path / "compiler.py", fault), seconds) as run:
        answer = run(_PROGRAM, (_X, _Y))
    assert answer.outputs is None
    assert told in (getattr(answer, kind) or "")


def _has_ended(process: int) -> bool:
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 60.0)[0])
    finally:
        os.close(descriptor)


def test_nothing_that_a_command_starts_outlives_its_call(tmp_path: Path) -> None:
    child = tmp_path / "child"
    with Command(["sh", "-c", f"sleep 100 & echo $! > {child}; wait", "x"], 1.0) as run:
        assert run(_PROGRAM, (_X, _Y)).crash == "no answer in 1 s"
        assert _has_ended(int(child.read_text()))


def test_nothing_that_a_command_starts_outlives_its_caller(tmp_path: Path) -> None:
    """A reduction kills workers whose answer nobody waits for, with whatever they run."""
    child = tmp_path / "child"
    # The file has its name when it is complete.
    words = ["sh", "-c", f"sleep 100 & echo $! > {child}.new; mv {child}.new {child}; wait", "x"]
    code = f"from fuzz.peers.command import Command\nCommand({words!r}, 90.0)({_PROGRAM!r}, ())"
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) as caller:
        until = time.monotonic() + 60.0
        while not child.exists() and time.monotonic() < until:
            time.sleep(0.05)
        caller.kill()
    assert _has_ended(int(child.read_text()))


@pytest.mark.parametrize(("fault", "status"), [("", 0), ("found[0][1] += 0.5", 1)])
def test_hlo_check_judges_it(tmp_path: Path, fault: str, status: int) -> None:
    program = tmp_path / "program.hlo"
    program.write_text(_PROGRAM)
    command = " ".join(_words(tmp_path / "compiler.py", fault))
    assert main(["check", str(program), "--no-c", "--against", command]) == status


def test_no_such_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.hlo"
    program.write_text(_PROGRAM)
    assert main(["check", str(program), "--against", "no-such-compiler -O2"]) == 2
    assert "neither xla nor a command" in capsys.readouterr().err
