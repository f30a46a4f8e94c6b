"""What XLA rightly makes of ordinary programs, and was called wrong."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from hlo_oracle.command.main import main

PROGRAMS = sorted((Path(__file__).parent / "false_alarms").glob("*.hlo"))


@pytest.mark.skipif(not importlib.util.find_spec("jaxlib"), reason="XLA is not installed")
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_nothing_is_outside(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor undetermined: sums of f16 in order, exp(x) / exp(y) as exp(x - y), log(sqrt(x)) as
    log(x) / 2, (x + c) - c as x in another computation, behind a tuple, behind a reverse,
    (x + c) + d as x + (c + d) also of an x computed of constants, 1 / (1 + exp(-x)) in f16, x -
    floor(x) computed in two loops, in one of them with x contracted, equal complex numbers whose
    parts are subnormal, z / |z| of a |z| that overflows."""
    arguments = ["--args", str(path.with_suffix(".npz"))]
    status = main(["check", "--no-c", "--json", "--against", "xla", *arguments, str(path)])
    row = json.loads(capsys.readouterr().out)
    assert status == 0, row
    assert not row["verdicts"]["outside"] and not row["verdicts"]["undetermined"], row
