"""Check that failures that a reader believes rank before those at the ends of a type's range."""

from __future__ import annotations

import numpy as np
import pytest
from planted import answering

import fuzz
import hlo
from fuzz.judge.failure import Against, Failure
from fuzz.judge.plausibility import ANY, CLEAR, PLAIN, plausibility
from fuzz.peers.xla import Answer
from fuzz.reducer.numbers import simpler_numbers
from fuzz.reducer.search import Case
from interp.envelope.budget import XLA_CPU

_NEGATE = "HloModule m\nENTRY e { x = TYPE parameter(0)  ROOT r = TYPE negate(x) }"


def _failure(type_: str, x: object, actual: object) -> Failure:
    module = hlo.parse(_NEGATE.replace("TYPE", type_))
    dtype = module.entry.parameters[0].shape.element_type.numpy  # type: ignore[union-attr]
    answer = Answer((np.array(actual, dtype),))
    failure = Against(lambda text, arrays: answer, XLA_CPU).failure(module, (np.array(x, dtype),))
    assert failure is not None
    return failure


@pytest.mark.parametrize(
    ("type_", "x", "actual", "rank"),
    [
        ("f32[]", -1.0, 0.0, PLAIN),
        ("f32[]", -1.0, np.nan, PLAIN),
        ("f32[]", -1.0, np.inf, PLAIN),
        ("f32[]", -1.0, 1.01, ANY),
        ("f32[]", -1e-20, 0.0, CLEAR),
        ("f32[]", -1e-37, 2e-37, ANY),
        ("f32[]", -1e35, np.inf, ANY),
        ("f32[]", 0.0, 7.0, PLAIN),
        ("f32[2]", [-1e-37, -2.0], [2e-37, -2.0], PLAIN),
        ("s32[]", -7, 8, PLAIN),
        ("s32[]", -2000000000, 5, CLEAR),
        ("c64[]", -1 - 2j, 1 - 2j, PLAIN),
    ],
)
def test_ranks(type_: str, x: object, actual: object, rank: int) -> None:
    assert plausibility(_failure(type_, x, actual).found) == rank


def test_a_crash_is_plain() -> None:
    assert plausibility(None) == PLAIN


# A compiler whose exponential gives 0 for what is below e^-5.
_flushed = answering("exponential", lambda x: np.where(x < np.float32(np.exp(-5)), 0, x))


def test_a_reduction_keeps_what_is_plain() -> None:
    """A reduction of an exponential that is wrong below e^-5 keeps a result above e^-9.2, and
    leaves out e^-60."""
    module = hlo.parse(
        "HloModule m\nENTRY e { x = f32[2] parameter(0)  ROOT r = f32[2] exponential(x) }"
    )
    x = np.array([-60, -6.5], np.float32)
    against = Against(_flushed, XLA_CPU)
    failure = against.failure(module, (x,))
    assert failure is not None and plausibility(failure.found) == PLAIN
    kept = against.keeps(failure, module, (x,))
    _, (small,) = fuzz.reduce(module, (x,), kept, taken=kept.take)
    assert -9.2 < np.min(small) < -5


def test_everyday_numbers_are_simpler_than_extreme_ones() -> None:
    module = hlo.parse("HloModule m\nENTRY e { ROOT x = f32[1] parameter(0) }")
    case = Case(module, (np.array([3e38], np.float32),))
    proposed = {float(one.arrays[0][0]) for one in simpler_numbers(case)}
    assert proposed >= {0.0, 1.0, 3.0, 10.0, 100.0, 1000.0}
    case = Case(module, (np.array([88.5], np.float32),))
    assert not any(abs(float(one.arrays[0][0])) > 1e6 for one in simpler_numbers(case))
