"""``hlo report``: live bugs of XLA in larger programs, found again by the script without us."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

import hlo
from hlo_oracle.command.main import main

HOST = """HloModule host
step { s = (s32[], f32[4,6]) parameter(0)
  k = s32[] get-tuple-element(s), index=0
  v = f32[4,6] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(k, one)
  w = f32[4,6] negate(v)
  ROOT t = (s32[], f32[4,6]) tuple(next, w) }
more { s = (s32[], f32[4,6]) parameter(0)
  k = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT l = pred[] compare(k, three), direction=LT }
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
ENTRY main {
  x = f32[4,6] parameter(0)
  y = f32[4,6] parameter(1)
  i = s32[3] parameter(2)
  zero = f32[] constant(0)
  n = s32[] constant(0)
  a = f32[4,6] add(x, y)
  b = f32[4,6] tanh(a)
  c = f32[4,6] multiply(b, y)
  start = (s32[], f32[4,6]) tuple(n, c)
  loop = (s32[], f32[4,6]) while(start), condition=more, body=step
  d = f32[4,6] get-tuple-element(loop), index=1
  e = f32[6,4] transpose(d), dimensions={1,0}
  f = f32[4,4] dot(d, e), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  flat = f32[24] reshape(d)
  part = f32[20] slice(flat), slice={[2:22]}
BUG
  wide = f32[4,6] broadcast(bug), dimensions={}
  o = f32[4,6] subtract(wide, d)
  q = f32[4,6] floor(o)
  u = s32[4,6] convert(q)
  ub = s32[4,6] abs(u)
  z = f32[4,6] convert(ub)
  zz = f32[4,6] add(z, wide)
  ROOT out = (f32[4,6], f32[4,4]) tuple(zz, f)
}
"""
# Of docs/found: the lines of each bug, and the opcode that is to be blamed.
BUGS = {
    "dynamic-slice": """
  at = u8[] constant(200)
  p = f32[20] exponential(part)
  one = f32[1] dynamic-slice(p, at), dynamic_slice_sizes={1}
  bug = f32[] reshape(one)""",
    "scatter": """
  ij = s32[3,1] reshape(i)
  ii = s32[3,0] slice(ij), slice={[0:3], [0:0]}
  up = f32[1,3] slice(x), slice={[0:1], [0:3]}
  in = f32[1] slice(part), slice={[3:4]}
  sc = f32[1] scatter(in, ii, up), update_window_dims={0}, inserted_window_dims={},
    scatter_dims_to_operand_dims={}, index_vector_dim=1, to_apply=sum
  bug = f32[] reshape(sc)""",
    "popcnt": """
  ten = f32[] constant(-10)
  tens = f32[4,6] broadcast(ten), dimensions={}
  ty = f32[4,6] multiply(y, tens)
  sy = s4[4,6] convert(ty)
  pc = s4[4,6] popcnt(sy)
  pf = f32[4,6] convert(pc)
  bug = f32[] reduce(pf, zero), dimensions={0,1}, to_apply=sum""",
    "reduce-window": """
  rw = f32[19] reduce-window(part, zero), window={size=1 pad=0_-1}, to_apply=sum
  bug = f32[] reduce(rw, zero), dimensions={0}, to_apply=sum""",
}
# Reads a report as someone without this project does.
ALONE = """
import runpy, sys
for name in ("hlo", "interp", "backend_c", "fuzz", "hlo_oracle", "jax"):
    sys.modules[name] = None
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""


FLAGS = "--xla_backend_optimization_level=0"  # XLA compiles in half of the time, with its bugs


@pytest.mark.sampled(1)
@pytest.mark.parametrize("opcode", BUGS)
def test_a_bug_of_xla(
    opcode: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("jaxlib")
    monkeypatch.setenv("XLA_FLAGS", FLAGS)
    file, directory = tmp_path / "p.hlo", tmp_path / "found here"
    file.write_text(HOST.replace("\nBUG", BUGS[opcode]))
    status = main(["report", str(file), "--seed", "3", "-o", str(directory)])
    assert status == 1 and str(directory) in capsys.readouterr().out
    small = hlo.parse((directory / "reduced.hlo").read_text())
    hlo.verify(small)
    assert len(small.entry.instructions) <= 5
    assert opcode in [i.opcode for i in small.entry.instructions]
    assert (directory / "original.hlo").read_bytes() == file.read_bytes()
    with zipfile.ZipFile(tmp_path / "found here.zip") as archive:
        names = {Path(name).name for name in archive.namelist()}
    assert names >= {path.name for path in directory.iterdir()}
    facts = json.loads((directory / "facts.json").read_text())
    assert facts["XLA_FLAGS"] == FLAGS
    text = (directory / "issue.md").read_text()
    assert f"`{opcode}`" in text.splitlines()[0] and hlo.format(small).strip() in text
    assert facts["versions"]["jaxlib"] in text and "reproduce.py" in text
    if facts["kind"] == "crash":
        assert facts["crash"] in text and "SIGABRT" in text
    else:
        assert re.search(r"\| .* \(0x[0-9a-f]+\) \| .* \(0x[0-9a-f]+\) \| .* \|", text)
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(directory / "reproduce.py")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[-1].startswith(("still wrong", "XLA ends: -6"))


FINE = """HloModule fine
ENTRY main {
  x = f32[4] parameter(0)
  ROOT r = f32[4] exponential(x)
}
"""


@pytest.mark.parametrize(
    ("function", "status", "said"),
    [
        ("exponential(x)", 0, "nothing is wrong with what XLA:CPU of jaxlib {} makes of it"),
        ("mulhi(x, x)", 2, "XLA:CPU of jaxlib {} does not take it: "),
    ],
)
def test_nothing_is_wrong(
    function: str, status: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("jaxlib")
    text = FINE.replace("exponential(x)", function)
    (tmp_path / "p.hlo").write_text(text.replace("f32", "s64") if "mulhi" in function else text)
    assert main(["report", str(tmp_path / "p.hlo")]) == status
    told = capsys.readouterr()
    assert f"p.hlo: {said.format(version('jaxlib'))}" in (told.err if status else told.out)
    assert [path.name for path in tmp_path.iterdir()] == ["p.hlo"]


def test_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.hlo").write_text(FINE.replace("f32[4] exp", "f32[5] exp"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert main(["report", str(tmp_path / "p.hlo")]) == 2
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["report", str(tmp_path / "p.hlo")]) == 2
    assert "jaxlib is not installed" in capsys.readouterr().err


DOCS = (ROOT / "docs" / "reports.md").read_text()


def test_the_example_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("jaxlib")
    (program,) = re.findall(r"^```\n(HloModule.*?)^```$", DOCS, re.MULTILINE | re.DOTALL)
    (transcript,) = re.findall(r"^```console\n(.*?)^```$", DOCS, re.MULTILINE | re.DOTALL)
    (tmp_path / "program.hlo").write_text(program)
    monkeypatch.chdir(tmp_path)
    command, _, expected = transcript.partition("\n")
    assert main(command.removeprefix("$ hlo ").split()) == 1
    assert capsys.readouterr().out == expected
    for path in (tmp_path / "program.hlo.report").iterdir():
        assert f"`{path.name}`" in DOCS


HOSTILE = """HloModule "a `b`; $(touch here)"
"``` '; import os #" {
  "'\\\\" = s4[2] parameter(0)
  ROOT "../../up" = s4[2] popcnt("'\\\\"), metadata={op_name="```'"}
}
ENTRY "main" {
  "$HOME" = s4[2] parameter(0)
  ROOT "`r`" = s4[2] call("$HOME"), to_apply="``` '; import os #"
}
"""


def test_no_name_of_the_program_reaches_anything(tmp_path: Path) -> None:
    pytest.importorskip("jaxlib")
    from fuzz.judge.failure import Failure, Judged
    from fuzz.report import Report, write
    from interp.envelope.budget import XLA_CPU

    module = hlo.parse(HOSTILE)
    failure = Failure("crash", frozenset(("SIGABRT",)), "SIGABRT: ```` `) $(touch here)")
    report = Report(module, (), Judged(failure, XLA_CPU), HOSTILE.encode(), ())
    archive = write(report, tmp_path / "found")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["found", archive.name]
    script = (tmp_path / "found" / "reproduce.py").read_text()
    assert "import os #" not in script and "touch" not in script
    fences = re.findall(r"^`{3,}$", (tmp_path / "found" / "issue.md").read_text(), re.MULTILINE)
    assert fences == ["`" * 4] * 2 + ["`" * 5] * 2


def _script_says(folder: Path) -> tuple[int, list[str]]:
    command = [sys.executable, str(folder / "reproduce.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()


def test_a_report_of_another_type_runs(tmp_path: Path) -> None:
    """There is no exact result to compare such a one with, element by element."""
    pytest.importorskip("jaxlib")
    from fuzz.judge.failure import Against, Judged
    from fuzz.peers.xla import Answer
    from fuzz.report import Report, write
    from interp.envelope.budget import XLA_CPU

    module = hlo.parse("HloModule m\nENTRY e { x = s32[2] parameter(0)  ROOT r = s32[2] abs(x) }")
    x = np.array([1, 2], np.int32)
    against = Against(lambda text, arrays: Answer((np.array([1.0]),)), XLA_CPU)
    failure = against.failure(module, (x,))
    assert failure is not None
    write(Report(module, (x,), Judged(failure, XLA_CPU), b"", (x,)), tmp_path / "found")
    said = "results [['int32', [2]]], expected [['int32', [2]]]"
    assert _script_says(tmp_path / "found") == (0, [said, "right"])


def test_a_report_of_other_sizes_expects_those_in_use(tmp_path: Path) -> None:
    """XLA is right here, and returns the room of three rows, of which two are in use."""
    pytest.importorskip("jaxlib")
    from fuzz.judge.failure import Against, Judged
    from fuzz.peers.xla import Answer
    from fuzz.report import Report, write
    from interp.envelope.budget import XLA_CPU

    module = hlo.parse(
        """HloModule m
        ENTRY e { x = f32[3,2] parameter(0)
                  n = s32[] parameter(1)
                  b = f32[<=3,2] set-dimension-size(x, n), dimensions={0}
                  ROOT r = f32[<=3,2] negate(b) }"""
    )
    x, n = np.arange(6, dtype=np.float32).reshape(3, 2), np.int32(2)
    against = Against(lambda text, arrays: Answer((-x[:1],)), XLA_CPU)
    failure = against.failure(module, (x, n))
    assert failure is not None
    folder = tmp_path / "found"
    write(Report(module, (x, n), Judged(failure, XLA_CPU), b"", (x, n)), folder)
    facts = json.loads((folder / "facts.json").read_text())
    assert (facts["results"], facts["bounds"]) == ([["float32", [2, 2]]], [[3, 2]])
    with np.load(folder / "expected.npz") as expected:
        assert np.array_equal(expected["exact0"], -x[:2])
    said = "results [['float32', [2, 2]]], expected [['float32', [2, 2]]]"
    assert _script_says(folder) == (0, [said, "right"])


def test_a_report_with_arguments_that_jaxlib_cannot_hold_runs(tmp_path: Path) -> None:
    """It compiles the program first, and ends there, or takes no array of f6."""
    pytest.importorskip("jaxlib")
    file, folder = tmp_path / "p.hlo", tmp_path / "found"
    file.write_text(
        "HloModule m\nENTRY e { a = f6e2m3fn[3] parameter(0)  ROOT r = f6e2m3fn[3] acos(a) }"
    )
    if main(["report", str(file), "--seed", "1", "-o", str(folder), "--seconds", "1"]) == 1:
        status, said = _script_says(folder)
        assert status == 1 and said[-1].startswith("XLA ends: ")
