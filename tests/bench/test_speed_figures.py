"""Statistics, ratios and limits of the benchmark: properties of the arithmetic, without timing."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend_c.profiles.limits import Limits, best
from bench.speed.rows import Measured, Row
from bench.speed.statistics import Timing, geometric_mean, ratio, timing

SECONDS = st.floats(1e-9, 1e4)
RATIOS = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20)
LIMITS = st.builds(
    Limits,
    *[st.fixed_dictionaries({size: st.floats(1e8, 1e12) for size in (1 << 18, 1 << 24)})] * 2,
    st.fixed_dictionaries({kind: st.floats(1e8, 1e13) for kind in ("f32", "f64", "bf16", "s8")}),
)
OPERATIONS = st.dictionaries(st.sampled_from(("f32", "f64", "bf16", "s32")), st.floats(0, 1e12))
BYTES = st.integers(0, 1 << 34)


@given(st.lists(SECONDS, min_size=1))
def test_timing_is_between_the_samples(samples: list[float]) -> None:
    found = timing(samples)
    assert found is not None
    assert found.minimum == min(samples) <= found.median <= max(samples)
    assert found.samples == len(samples)
    below = sum(one <= found.median for one in samples)
    above = sum(one >= found.median for one in samples)
    assert 2 * min(below, above) >= len(samples) - 1


def test_timing_of_nothing() -> None:
    assert timing([]) is None


@given(SECONDS, SECONDS)
def test_ratio_is_below_one_where_ours_is_faster(ours: float, other: float) -> None:
    found = ratio(ours, other)
    assert found is not None
    assert (found < 1) == (Fraction(ours) / Fraction(other) < 1) or math.isclose(found, 1)


@pytest.mark.parametrize(("ours", "other"), [(None, 1.0), (1.0, None), (1.0, 0.0), (None, None)])
def test_no_ratio_without_both(ours: float | None, other: float | None) -> None:
    assert ratio(ours, other) is None


@given(RATIOS, st.floats(1e-3, 1e3))
def test_geometric_mean_scales(ratios: list[float], factor: float) -> None:
    mean = geometric_mean(ratios)
    scaled = geometric_mean(one * factor for one in ratios)
    inverse = geometric_mean(1 / one for one in ratios)
    assert mean is not None and scaled is not None and inverse is not None
    assert math.isclose(scaled, factor * mean, rel_tol=1e-9)
    assert math.isclose(inverse, 1 / mean, rel_tol=1e-9)
    assert min(ratios) <= mean * (1 + 1e-9) and mean <= max(ratios) * (1 + 1e-9)


@given(RATIOS)
def test_geometric_mean_leaves_out_what_is_missing(ratios: list[float]) -> None:
    assert geometric_mean([None, *ratios, None]) == geometric_mean(ratios)
    assert geometric_mean([None]) is None


@given(LIMITS, BYTES, BYTES, OPERATIONS)
def test_limit_is_the_larger_of_memory_and_arithmetic(
    limits: Limits, read: int, written: int, operations: dict[str, float]
) -> None:
    memory, arithmetic = limits.seconds(read, written, {}), limits.seconds(0, 0, operations)
    assert limits.seconds(read, written, operations) == max(memory, arithmetic)


@given(LIMITS, LIMITS, BYTES, BYTES, OPERATIONS)
def test_a_better_measurement_never_raises_the_limit(
    one: Limits, other: Limits, read: int, written: int, operations: dict[str, float]
) -> None:
    both = best(one, other)
    assert both == best(other, one)
    for limits in (one, other):
        assert both.seconds(read, written, operations) <= limits.seconds(read, written, operations)


def test_limits_survive_json() -> None:
    limits = Limits({1 << 18: 2.0}, {1 << 18: 1.0}, {"f32": 3.0})
    written = {"read": {"262144": 2.0}, "copy": {"262144": 1.0}, "operations": {"f32": 3.0}}
    assert Limits.of(written) == limits


def measured(seconds: float | None) -> Measured:
    each = None if seconds is None else Timing(seconds, seconds, 1)
    return Measured(wall=each, cpu=each)


@given(st.dictionaries(st.sampled_from(("fast", "exact", "xla", "torch")), st.none() | SECONDS))
def test_best_peer_is_the_fastest_of_the_others(seconds: dict[str, float | None]) -> None:
    row = Row("one", "memory", peers={peer: measured(s) for peer, s in seconds.items()})
    others = {p: s for p, s in seconds.items() if p in ("xla", "torch") and s is not None}
    found = row.best_peer("wall", ("fast", "exact"))
    assert (found is None) == (not others)
    assert found is None or others[found] == min(others.values())


def test_share_of_the_limit() -> None:
    row = Row("one", "memory", limit=1.0, limit_one=2.0, peers={"fast": measured(4.0)})
    assert row.share_of_limit("fast", "wall") == 0.25
    assert row.share_of_limit("fast", "cpu") == 0.5
    assert row.share_of_limit("xla", "cpu") is None
