"""docs/found is true: the expected results in its reports are the interpreter's."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from conftest import ROOT

import hlo
import interp
from fuzz.report import folder
from hlo.bit_equality import differences

FOUND = ROOT / "docs" / "found"
REPORTS = sorted(path.parent for path in FOUND.glob("*/facts.json"))
README = (FOUND / "README.md").read_text()


@pytest.mark.parametrize("report", REPORTS, ids=lambda path: path.name)
def test_a_report(report: Path) -> None:
    facts = json.loads((report / "facts.json").read_text())
    module = hlo.parse((report / "reduced.hlo").read_text())
    with np.load(report / "arguments.npz") as arrays, np.load(report / "expected.npz") as expected:
        types = [np.dtype(getattr(ml_dtypes, name, name)) for name in facts["arguments"]]
        given = [arrays[f"p{n}"].view(dtype) for n, dtype in enumerate(types)]
        result = interp.evaluate(module, *given)
        for n, output in enumerate(result if isinstance(result, tuple) else (result,)):
            if facts["kind"] != "crash":
                assert not differences(output, expected[f"exact{n}"].view(output.dtype))
    assert f"({report.name}/issue.md)" in README
    assert hlo.format(module).strip() in (report / "issue.md").read_text()
    script = Path(folder.__file__).with_name("reproduce.txt").read_text()
    assert (report / "reproduce.py").read_text() == script
