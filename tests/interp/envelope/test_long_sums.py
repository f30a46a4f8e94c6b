"""Long sums are legal in any order; usual orders and random roundings say more than the worst."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hlo
import interp
from hlo.values import Array
from interp.envelope.budget import XLA_CPU
from interp.envelope.evaluation import enclose
from interp.envelope.judgement import Judge
from interp.envelope.trying import Output
from interp.envelope.verdict import EQUAL, OUTSIDE, UNDETERMINED, WITHIN

SIZE = 20_000
PROGRAM = f"""HloModule prefix_sums
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}
ENTRY e {{
  x = f32[{SIZE}] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[{SIZE}] reduce-window(x, z), window={{size={SIZE} pad={SIZE - 1}_0}}, to_apply=add
}}
"""
X = np.random.default_rng(0).standard_normal(SIZE).astype(np.float32)


def in_order(x: Array) -> Array:
    return np.add.accumulate(x)


def by_doubling(x: Array) -> Array:
    """Add what is 1, 2, 4, … places before (Hillis, Steele 1986)."""
    found, step = x.copy(), 1
    while step < len(x):
        found[step:] = found[step:] + found[:-step]
        step *= 2
    return found


def in_blocks(x: Array) -> Array:
    """Add within blocks, and to them the sums of the blocks before."""
    rows = np.add.accumulate(x.reshape(-1, 100), axis=1)
    before = np.add.accumulate(np.concatenate([np.zeros(1, np.float32), rows[:-1, -1]]))
    return (rows + before[:, None]).reshape(-1)


def judged(actual: Array) -> Output:
    module = hlo.parse(PROGRAM)
    exact = [("", np.asarray(interp.evaluate(module, X)))]
    found = Judge(module, (X,), exact, peer=XLA_CPU).judged([actual], lambda other: None)
    return found.outputs[0]


def verdicts(actual: Array) -> dict[str, int]:
    return judged(actual).verdict.counts


@pytest.mark.parametrize("algorithm", [in_order, by_doubling, in_blocks])
def test_usual_algorithms_are_within(algorithm: Callable[[Array], Array]) -> None:
    counts = verdicts(algorithm(X))
    assert counts[WITHIN] > SIZE / 4 and counts[EQUAL] + counts[WITHIN] == SIZE


def test_what_some_order_may_give_stays_undetermined() -> None:
    """Sums that are off by more than usual algorithms err, and by less than the worst order does,
    stay undetermined."""
    actual = in_order(X)
    actual[-100:] += 0.25
    counts = verdicts(actual)
    assert counts[UNDETERMINED] == 100 and not counts[OUTSIDE]


def test_what_no_order_gives_is_outside() -> None:
    actual = in_order(X)
    actual[-100:] += 100
    assert verdicts(actual)[OUTSIDE] == 100


@pytest.mark.parametrize("error, count", [(0.25, 0), (4, 0), (10, 100)])
def test_errors_beyond_random_rounding_are_unlikely(error: float, count: int) -> None:
    """Errors beyond random rounding are called unlikely and stay undetermined: 40 standard
    deviations are about 5 here."""
    actual = in_order(X)
    actual[-100:] += np.float32(error)
    found = judged(actual)
    assert found.verdict.counts[UNDETERMINED] == 100 and not found.verdict.counts[OUTSIDE]
    assert (found.unlikely.count if found.unlikely else 0) == count
    if found.unlikely:
        assert found.unlikely.first == (SIZE - 100,)
        assert found.unlikely.likely.high[-100] < actual[-100]


_LONG = {
    "reduce": "reduce(x, z), dimensions={0}, to_apply=add",
    "dot": "dot(x, o), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
}


@pytest.mark.parametrize("opcode", _LONG)
def test_sums_of_f64_err_little_more_here_than_in_any_order(opcode: str) -> None:
    """A sum of n numbers errs by n roundings in any order, and so does the one in the middle."""
    text = f"""HloModule m
add {{
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  ROOT s = f64[] add(a, b)
}}
ENTRY e {{
  x = f64[1000] parameter(0)
  z = f64[] constant(0)
  one = f64[] constant(1)
  o = f64[1000] broadcast(one), dimensions={{}}
  ROOT r = f64[] {_LONG[opcode]}
}}
"""
    x = np.random.default_rng(0).standard_normal(1000)
    legal = enclose(hlo.parse(text), x, peer=XLA_CPU).result
    order = np.argsort(x)
    assert legal.low <= np.add.accumulate(x[order])[-1] <= legal.high
    assert legal.high - legal.low < 2 * 2.02 * 1000 * 2.0**-53 * np.abs(x).sum()
