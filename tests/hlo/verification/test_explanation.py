"""Labels of constraints are explained, and details are of the instruction at fault."""

from __future__ import annotations

import inspect
import re

import pytest
from conftest import ROOT

import hlo
from hlo.errors import VerifyError, explained
from hlo.verification.explanation import _LABELS
from hlo.walk import column

ADD = """HloModule m
ENTRY e {
  x = f32[3] parameter(0)
  y = f32[4] parameter(1)
  ROOT sum = f32[3] add(x, y)
}
"""


def fault(text: str) -> VerifyError:
    with pytest.raises(VerifyError) as caught:
        hlo.verify(hlo.parse(text))
    return caught.value


def test_details_are_the_instruction_its_operands_and_the_label() -> None:
    error = fault(ADD)
    assert error.details == (
        "    ROOT sum = f32[3] add(x, y)    where x = f32[3] parameter(0); y = f32[4] parameter(1)",
        "    C3: a rule of add (hlo/ops/elementwise.py): of the same type and dims",
    )
    outer = ValueError("outside")
    outer.__cause__ = error
    assert explained(outer) == "\n".join(["outside", *error.details])
    assert explained(KeyError("x")) == "'x'"


def test_long_lines_and_many_operands_are_cut() -> None:
    operands = ", ".join(f"x{i}" for i in range(9))
    lines = "\n".join(f"  x{i} = f32[{i}] parameter({i})" for i in range(9))
    text = f"HloModule m\nENTRY e {{\n{lines}\n  ROOT c = f32[7] concatenate({operands})"
    error = fault(text + ", dimensions={1}\n}\n")
    assert error.details[0].endswith("x3 = f32[3] parameter(3); and 5 more")
    assert max(map(len, error.details)) < 300


def test_most_labels_are_stated_in_docstrings() -> None:
    """Fewer than 12 labels of constraints are not stated in docstrings; they are still named with
    their file."""
    silent = 0
    for op in column("hlo.ops").values():
        labels = re.findall(r'"(C\d+)"', inspect.getsource(op.function))
        stated = inspect.getdoc(op.function) or ""
        silent += sum(f"{label}: " not in stated for label in set(labels))
    assert silent < 12


def test_the_other_labels_are_all_explained() -> None:
    files = sorted((ROOT / "hlo/verification").glob("*.py"))
    source = "".join(path.read_text() for path in files)
    used = set(re.findall(r'Violation\(\s*"([a-z-]+)"', source))
    used |= set(re.findall(r'_error\([a-z]+, "([a-z-]+)"', source))
    assert used <= _LABELS.keys()
