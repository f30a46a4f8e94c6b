"""Arguments and environments of a run: what is refused, and what is drawn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, has_c_compiler

import hlo_oracle as ho
from hlo.errors import ArgumentError
from hlo_oracle.command.main import main

ADD = """HloModule add
ENTRY main {
  x = f32[3] parameter(0)
  ROOT sum = f32[3] add(x, x)
}
"""
needs_c = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
_MASKED = "an array has masked elements"


def _masked(mask: list[bool]) -> np.ma.MaskedArray:
    return np.ma.MaskedArray(np.array([1, 2, 3], np.float32), mask=mask)


def test_a_mask_is_not_dropped() -> None:
    masked = _masked([False, True, False])
    with pytest.raises(ArgumentError, match=_MASKED):
        ho.run(ADD, masked)
    with pytest.raises(ArgumentError, match=_MASKED):
        ho.check(ADD, masked, results=[np.zeros(3, np.float32)])
    assert ho.run(ADD, masked.filled(7)).tolist() == [2, 14, 6]
    assert ho.run(ADD, _masked([False] * 3)).tolist() == [2, 4, 6]  # there is nothing to drop


@needs_c
def test_c_drops_no_mask() -> None:
    executable, masked = ho.compile(ADD), _masked([False, True, False])
    for call in (executable, executable.bind):
        with pytest.raises(ArgumentError, match=_MASKED):
            call(masked)


_COMPILED = """
import numpy as np
import hlo_oracle as ho
text = "ENTRY m { x = f32[300000] parameter(0) ROOT e = f32[300000] exponential(x) }"
try:
    ho.compile("HloModule a " + text)(np.zeros(300000, np.float32))
except ho.Error as error:
    print(error)
else:
    print("without OpenMP")
"""


@needs_c
@pytest.mark.parametrize("count", [100_000, 10**9])
def test_too_many_threads_in_the_environment(count: int) -> None:
    """OpenMP ends the process, or its threads do by a signal."""
    done = subprocess.run(
        [sys.executable, "-c", _COMPILED],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": str(count)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith((f"OMP_NUM_THREADS={count}: from 1 to ", "without OpenMP"))


TOKEN = """\
HloModule given_tokens
ENTRY e {
  p = (f32[4], token[]) parameter(0)
  t = token[] parameter(1)
  x = f32[4] get-tuple-element(p), index=0
  u = token[] get-tuple-element(p), index=1
  both = token[] after-all(t, u)
  y = f32[4] add(x, x)
  ROOT r = (f32[4], token[]) tuple(y, both)
}
"""


@needs_c
def test_tokens_are_given_and_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They were objects of NumPy, which a saved file pickled and JSON had the address of."""
    file, saved = tmp_path / "tokens.hlo", tmp_path / "saved.npz"
    file.write_text(TOKEN)
    assert main(["run", str(file), "--save", str(saved), "--json"]) == 0
    (described,) = json.loads(capsys.readouterr().out)
    assert described["output"] == "{0}" and np.load(saved)["{0}"].shape == (4,)
    assert main(["check", str(file), "--progress", "none"]) == 0
    assert "1 output equal" in capsys.readouterr().out
    alone = TOKEN.replace("(f32[4], token[]) tuple(y, both)", "token[] after-all(both)")
    file.write_text(alone)
    assert main(["run", str(file)]) == 0
    assert capsys.readouterr().out.startswith("no arrays: ")
