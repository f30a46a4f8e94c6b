"""A NaN that was computed has any bits; who looks at them has no one result."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
from fuzz.nan_bits import depends_on_them

_PROGRAM = """HloModule m
ENTRY e {
  x = f16[2] parameter(0)
  f = f16[2] floor(x)
  b = bf16[2] bitcast-convert(f)
  ROOT r = bf16[2] sinh(b)
}
"""


@pytest.mark.parametrize(("number", "depends"), [(1.5, False), (np.nan, True)])
def test_only_where_there_is_a_nan(number: float, depends: bool) -> None:
    x = np.array([1, number], np.float16)
    assert depends_on_them(hlo.parse(_PROGRAM), [x]) == depends
    assert not depends_on_them(hlo.parse(_PROGRAM.replace("bitcast-convert", "convert")), [x])
