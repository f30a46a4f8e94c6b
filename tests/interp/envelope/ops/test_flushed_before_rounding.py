"""Results that are rounded up to the least normal number: hardware may flush them before it rounds
them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import hlo
from interp.envelope.budget import FAST, XLA_CPU
from interp.envelope.enclosure import contains
from interp.envelope.evaluation import enclose

_TYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16}


def _legal(line: str, *values: float, zero: float = 0.0) -> tuple[bool, bool]:
    """Test whether zero is legal for a peer that flushes, and for one that does not."""
    source = "f64" if "convert" in line else line.partition("[")[0]
    result = _TYPES[line.partition("[")[0]]
    parameters = "\n".join(f"  p{n} = {source}[] parameter({n})" for n in range(len(values)))
    module = hlo.parse(f"HloModule m\nENTRY e {{\n{parameters}\n  ROOT r = {line}\n}}")
    given = [np.asarray(value, _TYPES[source]) for value in values]
    assert [float(x) for x in given] == list(values)
    found = (enclose(module, *given, peer=peer).result for peer in (XLA_CPU, FAST))
    flushing, other = (bool(contains(x, np.asarray(zero, result)).all()) for x in found)
    return flushing, other


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("f32[] multiply(p0, p1)", (2.0**-126, 1 - 2.0**-24)),
        ("f32[] multiply(p0, p1)", (-(2.0**-126), 1 - 2.0**-24)),
        ("f64[] multiply(p0, p1)", (2.0**-1022, 1 - 2.0**-53)),
        ("bf16[] multiply(p0, p1)", (2.0**-126, 1 - 2.0**-8)),
        ("f32[] convert(p0)", (2.0**-126 * (1 - 2.0**-24),)),
        ("f32[] convert(p0)", (-(2.0**-126) * (1 - 2.0**-30),)),
    ],
)
def test_zero_in_place_of_the_least_normal_number(line: str, values: tuple[float, ...]) -> None:
    assert _legal(line, *values) == (True, False)


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("f32[] multiply(p0, p1)", (2.0**-125, 0.75)),
        ("f32[] add(p0, p1)", (2.0**-125, -(2.0**-126))),
        ("f32[] maximum(p0, p1)", (2.0**-126, 0.0)),
        ("f32[] convert(p0)", (2.0**-126 * (1 + 2.0**-20),)),
    ],
)
def test_what_is_normal_before_it_is_rounded_is_not_flushed(
    line: str, values: tuple[float, ...]
) -> None:
    assert _legal(line, *values) == (False, False)
