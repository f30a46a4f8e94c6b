"""Summaries of values, and deviations of another compiler's results."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_examples import MODEL, module

import interp
import pages
from interp.envelope.enclosure import Enclosure, point
from interp.envelope.nested_values import Evaluation, FirstOutside, NestedValue
from interp.envelope.trying import Found, Output
from interp.envelope.verdict import KINDS, OUTSIDE, UNDETERMINED, WITHIN, judged
from pages.value_summaries import Summary
from pages.values import deviations, largest_in_cells

LOOP = """HloModule loop
condition { state = (s32[], f32[3]) parameter(0)
            i = s32[] get-tuple-element(state), index=0
            ten = s32[] constant(3)
            ROOT less = pred[] compare(i, ten), direction=LT }
body { state.1 = (s32[], f32[3]) parameter(0)
       i.1 = s32[] get-tuple-element(state.1), index=0
       x.1 = f32[3] get-tuple-element(state.1), index=1
       one = s32[] constant(1)
       next = s32[] add(i.1, one)
       doubled = f32[3] add(x.1, x.1)
       ROOT both = (s32[], f32[3]) tuple(next, doubled) }
ENTRY main {
  x = f32[3] parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[3]) tuple(zero, x)
  loop = (s32[], f32[3]) while(init), condition=condition, body=body
  ROOT result = f32[3] get-tuple-element(loop), index=1
}
"""


def summaries(*arrays: Any) -> dict[str, Any]:
    observed = pages.Observed(module(LOOP))
    interp.evaluate(module(LOOP), *arrays, watch=observed)
    listed: Any = observed.json()["observed"]
    return {f"{one['computation']}/{one['name']}": one["arrays"] for one in listed}


def test_what_is_evaluated_often_is_summarised_over_all_trips() -> None:
    found = summaries(np.float32([1, -2, 3]))
    (doubled,) = found["body/doubled"]
    assert (doubled["runs"], doubled["elements"]) == (3, 9)
    assert (doubled["low"], doubled["high"]) == (-16, 24)
    assert doubled["ranges"] == [[0, -4, 6, 0], [1, -8, 12, 0], [2, -16, 24, 0]]
    kept = {name: (number, sum(bins)) for name, number, _, _, _, bins in doubled["kept"]}
    assert kept == {"first": (0, 3), "worst": (2, 3), "last": (2, 3)}
    assert [one["place"] for one in found["main/loop"]] == ["{0}", "{1}"]


def test_special_numbers_are_counted_and_nothing_finite_is_no_range() -> None:
    (x,) = summaries(np.float32([np.nan, np.inf, 1e-40]))["main/x"]
    assert x["counts"] == {"NaN": 1, "infinite": 1, "subnormal": 1}
    assert x["low"] == x["high"] == pytest.approx(1e-40, rel=1e-4)
    (x,) = summaries(np.float32([np.nan] * 3))["main/x"]
    assert x["low"] is None and x["kept"] == [["first", 0, None, None, 3, ()]]


def test_the_worst_evaluation_has_most_that_is_not_finite() -> None:
    (doubled,) = summaries(np.float32([3e38, 1, np.nan]))["body/doubled"]
    kept = {name: (number, special) for name, number, _, _, special, _ in doubled["kept"]}
    assert kept == {"first": (0, 2), "worst": (0, 2), "last": (2, 2)}
    (doubled,) = summaries(np.float32([1e38, 2e38, 1]))["body/doubled"]
    kept = {name: (number, special) for name, number, _, _, special, _ in doubled["kept"]}
    assert kept == {"first": (0, 1), "worst": (1, 2), "last": (2, 2)}


@given(st.integers(1, 700))
def test_ranges_of_many_evaluations_are_some_at_equal_distances(runs: int) -> None:
    summary = Summary("")
    for number in range(runs):
        summary.add(np.float32(number))
    numbers = [number for number, *_ in summary.json()["ranges"]] if runs > 1 else [0]  # type: ignore[attr-defined]
    assert numbers == [*range(0, runs, summary.every)] and len(numbers) <= 128
    assert (summary.low, summary.high, summary.runs) == (0, runs - 1, runs)


@given(
    st.sampled_from([np.float32, ml_dtypes.bfloat16, np.float16, np.int8, np.bool_, np.complex64]),
    st.sampled_from([0.0, 1.0, -3.0, 1e-40, 6e-8, float("inf"), float("nan")]),
)
def test_one_number_is_summarised_as_an_array_of_it(dtype: Any, value: float) -> None:
    one, two = Summary(""), Summary("")
    if np.issubdtype(dtype, np.integer) or dtype is np.bool_:
        value = 1.0
    array = np.full((1,), value).astype(dtype)
    one.add(array)
    two.add(np.repeat(array, 2))
    assert {kind: 2 * count for kind, count in one.counts.items()} == two.counts
    assert (one.low, one.high) == (two.low, two.high)


def test_computations_that_are_applied_to_elements_have_no_values() -> None:
    observed = pages.Observed(module(MODEL))
    assert observed.json()["applied"] == ["add"]


@given(
    st.sampled_from([np.float32, np.float64, np.float16, ml_dtypes.bfloat16]),
    st.floats(1.0, 1.9),
    st.integers(0, 40),
)
def test_deviations_count_neighbours(dtype: Any, value: float, steps: int) -> None:
    exact = np.asarray([value], dtype)
    unit = float(ml_dtypes.finfo(dtype).eps)
    actual = (exact.astype(np.float64) + steps * unit).astype(dtype)
    if actual < 2:
        assert deviations(actual, exact) == steps


def test_deviations_of_what_is_no_finite_float() -> None:
    nan, inf = np.float32("nan"), np.float32("inf")
    exact = np.float32([nan, inf, 1, inf])
    actual = np.float32([nan, inf, nan, -inf])
    assert list(deviations(actual, exact) > 0) == [False, False, True, True]
    assert list(deviations(np.int32([1, 5]), np.int32([1, 2]))) == [0, 3]
    assert deviations(np.complex64([1 + 1j]), np.complex64([1 + 1j])) == 0


@given(st.lists(st.integers(0, 150), max_size=3), st.randoms())
def test_cells_keep_the_largest(dims: list[int], random: Any) -> None:
    array = np.zeros(dims)
    cells = largest_in_cells(array)
    assert 1 <= cells.shape[0] <= 48 and 1 <= cells.shape[1] <= 64 and not cells.any()
    if array.size:
        array.flat[random.randrange(array.size)] = 7
        assert np.count_nonzero(largest_in_cells(array)) == 1
        assert largest_in_cells(array).max() == 7


def shown_of(judged: pages.Judged) -> Any:
    return pages.with_judged({}, judged)["judged"]


def test_a_verdict_says_where_it_is_outside() -> None:
    exact = np.float32([1, 2, 3])
    legal = Enclosure(exact, exact, np.zeros(3, bool))
    actual = np.float32([1, 2, 4])
    output = Output("{0}", judged(actual, exact, legal), actual, exact, legal)
    data = shown_of(pages.Judged("peer", Found((output,)), ["line"]))
    (shown,) = data["outputs"]
    assert shown["outside"] == [[0.0, 0.0, 1.0]] and shown["first"] == [2]
    assert shown["largest"] == 2**22 and data["evidence"] == ["line"]
    (opened,) = shown_of(pages.Judged("peer", Found((output,)), is_open=True))["outputs"]
    assert opened["outside"] == [[0.0, 0.0, 0.0]] and opened["first"] is None
    assert opened["counts"] == {"equal": 2, "within": 0, "undetermined": 1, "outside": 0}


def test_maps_of_instructions_are_of_those_that_are_off() -> None:
    exact = np.ones((40, 100), np.float32)
    legal = Enclosure(exact, exact, np.zeros(exact.shape, bool))
    off = exact + np.float32(2**-20)
    right, wrong = (
        Output(name, judged(actual, exact, legal), actual, exact, legal)
        for name, actual in (("right", exact), ("wrong", off))
    )
    first, second = shown_of(pages.Judged("peer", Found(()), (), [right, wrong]))["inner"]
    assert (first["place"], first["largest"], first["cells"]) == ("right", 0, None)
    assert second["largest"] == 8 and second["counts"]["outside"] == 4000
    assert len(second["cells"]) <= 16 and len(second["cells"][0]) <= 32


def evaluation(trip: int, actual: Any, exact: Any, *kinds: str) -> Evaluation:
    """Return the evaluation of two numbers in a trip."""
    numbers = np.array([KINDS.index(kind) for kind in kinds], np.int8)
    given = None if exact is None else np.float32(exact)
    return Evaluation((trip,), np.float32(actual), given, numbers)


def test_evaluations_say_where_they_differ_and_are_outside() -> None:
    evaluations = [
        evaluation(0, [1, 1], [1, 1], WITHIN, UNDETERMINED),  # equal, however little is known
        evaluation(2, [2, 2], [2, 1], WITHIN, WITHIN),
        evaluation(4, [2, 2], None, WITHIN, UNDETERMINED),
        evaluation(6, [2, 2], [2, 1], OUTSIDE, OUTSIDE),  # also where the exact run has the same
    ]
    zero = np.zeros((), np.float32)
    verdict = judged(zero, zero, point(zero))
    first = FirstOutside("body", "x", (6,), verdict, zero, point(zero))
    judgement = pages.Judged("peer", Found(()), nested=[NestedValue("body", "x", evaluations)])
    data = shown_of(judgement._replace(first=(first, "proof")))
    (shown,) = data["nested"]
    assert (shown["computation"], shown["place"]) == ("body", "x")
    assert shown["counts"] == {"equal": 3, "within": 2, "undetermined": 1, "outside": 2}
    assert (shown["evaluations"], shown["elsewhere"]) == (4, 1)
    assert shown["first"] == {"evaluation": 1, "trips": [2]}
    assert shown["first_outside"] == {"evaluation": 3, "trips": [6]}
    assert [[bool(x) for x in row] for row in shown["cells"]] == [
        [False, False],
        [False, True],
        [False, False],
        [False, True],
    ]
    assert shown["outside"][3] == [1, 1] and not any(map(any, shown["outside"][:3]))
    assert data["first"] == {
        "computation": "body",
        "place": "x",
        "trips": [6],
        "evidence": "proof",
    }


def test_evaluations_of_one_number_are_side_by_side() -> None:
    numbers = [
        Evaluation((n,), np.float32(n), np.float32(0), np.zeros((), np.int8)) for n in range(3)
    ]
    (shown,) = shown_of(pages.Judged("peer", Found(()), nested=[NestedValue("b", "x", numbers)]))[
        "nested"
    ]
    assert not shown["is_column"] and len(shown["cells"]) == 1 and len(shown["cells"][0]) == 3
