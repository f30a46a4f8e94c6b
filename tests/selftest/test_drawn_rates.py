"""Most drawn programs have elements, and those of most arguments are told apart."""

from collections import Counter

import numpy as np
import pytest

from fuzz.draw.distinct_values import distinct
from fuzz.draw.patterns import PATTERNS
from fuzz.draw.patterns.producers import PRODUCERS, READERS
from hlo.types import ELEMENT_TYPES, ElementType
from selftest.drawn_rates import RATES, main, measured, patterns

# Shares of what is counted, wide enough for any seed of so few programs.
_BOUNDS = {
    "programs without an element in any result": (0.001, 0.05),
    "programs with an empty value somewhere": (0.01, 0.15),
    "programs with NaN, inf, a subnormal or an end of a range": (0.15, 0.6),
    "constants without elements": (0.001, 0.08),
    "arguments of at most 2 distinct values": (0.02, 0.2),
    "arguments of distinct values, nine in ten at least": (0.5, 0.9),
    "f32 elements of magnitude 2^-8 to 2^8": (0.3, 0.8),
    "f64 elements of magnitude 2^-8 to 2^8": (0.3, 0.8),
    "f32 elements below 2^-64 or above 2^64": (0.05, 0.4),
    "f64 elements below 2^-512 or above 2^512": (0.05, 0.4),
}


def test_rates_are_near_what_is_documented() -> None:
    found = measured(1500, 0)
    assert {what for what, _ in RATES} == set(_BOUNDS)
    for what, of in RATES:
        low, high = _BOUNDS[what]
        assert low < found[what] / found[of] < high, (what, found[what], found[of])
    rarest = min(patterns(found).items(), key=lambda one: one[1])
    assert rarest[1] > 0.002, rarest  # the least of 88 counts of about 13
    assert sum(found[f"{reader} of {made}"] > 0 for reader in READERS for made in PRODUCERS) > 240


def test_the_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--programs", "50"]) == 1  # too few for each pattern
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(RATES) + len(PATTERNS) + 1 + 10
    assert "programs without an element in any result (of 50 programs)" in lines[0]


@pytest.mark.parametrize("name", [t.name for t in ELEMENT_TYPES.values() if t.is_array])
def test_elements_are_distinct_and_finite(name: str) -> None:
    element_type: ElementType = ELEMENT_TYPES[name]
    for kind in range(4):
        found = distinct(np.random.default_rng(1), element_type, 100, kind)
        assert found.dtype == element_type.numpy and found.shape == (100,)
        counts = Counter(row.tobytes() for row in found)
        there = 2 if name == "pred" else 2**element_type.bits
        assert len(counts) >= 0.6 * min(100, there), kind
        if element_type.bits > 8 and not element_type.is_integer:
            assert np.isfinite(found).all()
