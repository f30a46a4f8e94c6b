"""Every bug ever found, as a program: interpreter and C agree on each, and with its comments.

A file of tests/regressions is HLO text. ``// expect: …`` lines, if there are any, hold the
expected result, as NumPy prints it with repr, one line for each output.
"""

from pathlib import Path

import pytest
from conftest import TESTS, has_c_compiler

import backend_c
import hlo
import interp
from hlo.bit_equality import differences
from hlo.values import arrays_of
from hlo_oracle.arguments import from_seed

FILES = sorted((TESTS / "regressions").glob("*.hlo"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_regression(path: Path) -> None:
    text = path.read_text()
    module = hlo.parse(text)
    for dialect in ("short", "long"):
        assert hlo.parse(hlo.format(module, dialect)) == module
    canonical = hlo.parse(hlo.format(module, "canonical"))
    hlo.verify(canonical)
    arguments = from_seed(module, 0)
    expected = interp.evaluate(module, *arguments)
    assert not differences(expected, interp.evaluate(canonical, *arguments))
    wanted = [line[10:].strip() for line in text.splitlines() if line.startswith("// expect:")]
    if wanted:
        assert [repr(array.tolist()) for array in arrays_of(expected)] == wanted
    if has_c_compiler():
        assert not differences(expected, backend_c.compile(module, numerics="exact")(*arguments))
