"""Infinities and NaN open the narrow sums that they go into, and no others."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import hlo
from interp.envelope.budget import XLA_CPU, Folds
from interp.envelope.enclosure import Enclosure
from interp.envelope.evaluation import enclose

_SUM = """HloModule m
sum {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT c = bf16[] add(a, b)
}
ENTRY e {
  x = bf16[2,40] parameter(0)
  z = bf16[] constant(0)
  RESULT
}
"""
_RESULTS = {
    "reduce": "ROOT r = bf16[2] reduce(x, z), dimensions={1}, to_apply=sum",
    "reduce-window": "ROOT r = bf16[2,40] reduce-window(x, z), window={size=1x40 pad=0_0x39_0},"
    " to_apply=sum",
    "scatter": "k = s32[40] iota(), iota_dimension=0\n t = s32[40] subtract(k, k)\n"
    " i = s32[40,1] reshape(t)\n b = bf16[2,1] broadcast(z), dimensions={}\n"
    " ROOT r = bf16[2,1] scatter(b, i, x), update_window_dims={0}, inserted_window_dims={1},"
    " scatter_dims_to_operand_dims={1}, index_vector_dim=1, to_apply=sum",
}


@pytest.mark.parametrize("way", Folds)
@pytest.mark.parametrize("opcode", _RESULTS)
@pytest.mark.parametrize("special", ["inf", "nan", "may be NaN"])
def test_other_sums_stay_as_they_are(special: str, opcode: str, way: Folds) -> None:
    peer = replace(XLA_CPU, usual_sums=True, folds=way)
    module = hlo.parse(_SUM.replace("RESULT", _RESULTS[opcode]))
    x = np.random.default_rng(0).uniform(1, 2, (2, 40)).astype(ml_dtypes.bfloat16)
    nan = np.zeros(x.shape, np.bool_)
    plain = enclose(module, Enclosure(x, x, nan), peer=peer).result
    other, may_be = x.copy(), nan.copy()
    if special == "may be NaN":
        may_be[1, 3] = True
    else:
        other[1, 3] = float(special)
        may_be[1, 3] = special == "nan"
    found = enclose(module, Enclosure(other, other.copy(), may_be), peer=peer).result
    for one, expected in ((found.low, plain.low), (found.high, plain.high), (found.nan, plain.nan)):
        np.testing.assert_array_equal(one[0], expected[0])
    last = found.low[1].reshape(-1)[-1], found.high[1].reshape(-1)[-1]
    assert found.nan[1].reshape(-1)[-1] or last[0] == last[1] == np.inf
