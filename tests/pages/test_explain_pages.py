"""Pages by the command and from Python: values, verdicts, and the source of a function."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, has_c_compiler

import hlo_oracle as ho
from hlo_oracle.command.main import main

pytestmark = [
    pytest.mark.skipif(not has_c_compiler(), reason="no C compiler"),
    pytest.mark.skipif(not find_spec("jax"), reason="no JAX"),
]


def data_of(text: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_the_command_shows_values_and_proofs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    examples, page = ROOT / "examples", tmp_path / "page.html"
    recipe = str(examples / "arguments.json")
    program = str(examples / "power_of_integers.hlo")
    words = ["--recipe", recipe, "--values", "--against", "xla", "--html", str(page)]
    assert main(["explain", program, "--threads", "1", *words]) == 0
    assert capsys.readouterr().out == f"{page}\n"
    values = data_of(page.read_text())["values"]
    assert values["judged"]["evidence"][0].startswith("result: 1 of 1 outside")
    assert values["judged"]["outputs"][0]["outside"] == [[1.0]]
    assert {one["place"] for one in values["judged"]["inner"]} <= {
        one["name"] for one in values["observed"]
    }
    (array,) = values["observed"][0]["arrays"]
    assert array["elements"] == 1 and array["low"] == array["high"]


def doubled(x: Any) -> Any:
    return x + x  # this line is on the page


def test_a_function_comes_with_its_source() -> None:
    page = ho.explain(doubled, np.ones(3, np.float32), threads=1)
    data = data_of(page.text)
    (lines,) = data["sources"].values()
    (place,) = data["views"][0]["instructions"]["places"]
    assert "# this line is on the page" in lines[int(place.rpartition(":")[2]) - 1]
    assert repr(page) == f"Page({len(page.text)} bytes)"
