"""Enclosures of what ranks exchange, on the one rank that there is."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from hlo.types import ELEMENT_TYPES
from hlo.values import arrays_of
from interp.envelope.budget import XLA_CPU
from interp.envelope.evaluation import enclose
from interp.envelope.verdict import EQUAL, WITHIN, judged

_TYPES = "(f32[2], s32[3], f64[])"


@pytest.mark.parametrize(
    "lines",
    [
        f"ROOT r = {_TYPES} collective-permute(x, n, d), source_target_pairs={{PAIRS}}",
        f"s = ({_TYPES}, {_TYPES}, u32[], u32[]) collective-permute-start(x, n, d),"
        f" source_target_pairs={{PAIRS}}\n  ROOT r = {_TYPES} collective-permute-done(s)",
    ],
    ids=["at once", "started and done"],
)
@pytest.mark.parametrize("pairs", ["{{0,0}}", "{}"])
def test_a_permutation_of_three_arrays_moves_all_of_them(lines: str, pairs: str) -> None:
    """The third is an array like the others: only slices that are exchanged have starts."""
    text = "HloModule m\nENTRY main {\n  x = f32[2] parameter(0)\n  n = s32[3] parameter(1)\n"
    text += "  d = f64[] parameter(2)\n  " + lines.replace("{PAIRS}", pairs) + "\n}\n"
    module = hlo.parse(text)
    arguments = np.array([1.5, np.nan], np.float32), np.arange(3, dtype=np.int32), np.array(2.5)
    exact = arrays_of(interp.evaluate(module, *arguments))
    legal = arrays_of(enclose(module, *arguments, peer=XLA_CPU).result)
    for one, enclosure in zip(exact, legal, strict=True):
        array = np.asarray(one)
        assert enclosure.nan.dtype == bool
        assert judged(array, array, enclosure).worst == EQUAL


@pytest.mark.parametrize("received", [0, 255], ids=["zero bits", "NaN"])
def test_nobody_sends_zero_bits_or_nan_where_there_is_no_zero(received: int) -> None:
    text = """HloModule m
ENTRY main {
  x = f8e8m0fnu[1] parameter(0)
  ROOT r = f8e8m0fnu[1] collective-permute(x), source_target_pairs={}
}
"""
    one, other = (
        np.array([bits], np.uint8).view(ELEMENT_TYPES["f8e8m0fnu"].numpy)
        for bits in (127, received)
    )
    module = hlo.parse(text)
    exact = interp.evaluate(module, one)
    assert exact.view(np.uint8) == 255
    legal = enclose(module, one, peer=XLA_CPU).result
    assert judged(exact, other, legal).worst in (EQUAL, WITHIN)
