"""A compiler's values inside of loops, branches and calls are judged evaluation by evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from conftest import TESTS
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import fuzz
import hlo
import interp
from fuzz.judge.nested_values import nested_values
from fuzz.peers.xla import Answer
from hlo.errors import Error
from hlo.module import Module
from hlo.types import BF16, F32
from hlo.values import Array, arrays_of
from hlo_oracle.arguments import from_seed
from interp.envelope.budget import XLA_CPU
from interp.envelope.nested_values import NestedValues
from interp.envelope.verdict import EQUAL, KINDS, OUTSIDE, UNDETERMINED
from selftest.legal_compilers.compiler import Perturbed
from selftest.legal_compilers.errors import MODES

NESTED = hlo.parse("""HloModule nested
inner_condition { s = (s32[], s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  ROOT less = pred[] compare(i, n), direction=LT }
inner_body { s = (s32[], s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  x = f32[2] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  doubled = f32[2] add(x, x)
  ROOT all = (s32[], s32[], f32[2]) tuple(next, n, doubled) }
condition { s = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT less = pred[] compare(i, three), direction=LT }
body { s = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[2] get-tuple-element(s), index=1
  zero = s32[] constant(0)
  init = (s32[], s32[], f32[2]) tuple(zero, i, x)
  again = (s32[], s32[], f32[2]) while(init), condition=inner_condition, body=inner_body
  y = f32[2] get-tuple-element(again), index=2
  negated = f32[2] negate(y)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT both = (s32[], f32[2]) tuple(next, negated) }
ENTRY main {
  x = f32[2] parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[2]) tuple(zero, x)
  loop = (s32[], f32[2]) while(init), condition=condition, body=body
  ROOT result = f32[2] get-tuple-element(loop), index=1
}""")
# x -> 3.9 x (1 - x) in each trip: what a rounding changes is soon all of it. What is left of 1 is
# computed by a function that the entry calls, too.
CHAOS = hlo.parse("""HloModule chaos
rest { x = f32[8] parameter(0)
  u = f32[] constant(1)
  us = f32[8] broadcast(u), dimensions={}
  ROOT left = f32[8] subtract(us, x) }
body { s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  k = f32[] constant(3.9)
  ks = f32[8] broadcast(k), dimensions={}
  others = f32[8] call(x), to_apply=rest
  kx = f32[8] multiply(ks, x)
  y = f32[8] multiply(kx, others)
  ROOT t = (s32[], f32[8]) tuple(next, y) }
condition { s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(60)
  ROOT c = pred[] compare(i, n), direction=LT }
ENTRY e {
  x = f32[8] parameter(0)
  first = f32[8] call(x), to_apply=rest
  zero = s32[] constant(0)
  init = (s32[], f32[8]) tuple(zero, first)
  loop = (s32[], f32[8]) while(init), condition=condition, body=body
  ROOT r = f32[8] get-tuple-element(loop), index=1
}""")
# Where the number is the half, the branch is chosen by what may be rounded to either side.
HALF = np.float32(np.tanh(0.5))
CHOICE = f"""HloModule choice
up {{ x = f32[2] parameter(0)  ROOT high = f32[2] add(x, x) }}
down {{ x = f32[2] parameter(0)  ROOT low = f32[2] negate(x) }}
ENTRY main {{
  x = f32[2] parameter(0)
  number = f32[] parameter(1)
  root = f32[] tanh(number)
  half = f32[] constant({float(HALF)!r})
  chosen = pred[] compare(root, half), direction=LE
  ROOT r = f32[2] conditional(chosen, x, x), true_computation=up, false_computation=down
}}"""
X = np.float32([1, 3])
SPREAD = np.linspace(0.1, 0.9, 8, dtype=np.float32)
Change = Callable[[str], str]


def interpreted(text: str, arrays: Sequence[Array]) -> Answer:
    return Answer(tuple(arrays_of(interp.evaluate(hlo.parse(text), *arrays))))


def found_by(change: Change, module: Module, *arrays: Array) -> NestedValues:
    """Judge the compiler that takes a program for another one."""
    return nested_values(lambda text, x: interpreted(change(text), x), XLA_CPU, module, arrays)


def same(text: str) -> str:
    return text


def by_name(found: NestedValues) -> dict[tuple[str, str], Sequence[Any]]:
    return {(v.computation, v.instruction): v.evaluations for v in found.values}


def is_outside(evaluations: Sequence[Any]) -> list[bool]:
    return [bool((one.kinds == KINDS.index(OUTSIDE)).any()) for one in evaluations]


def test_each_trip_of_each_loop_has_its_values() -> None:
    found = found_by(same, NESTED, X)
    assert found.first is None
    evaluations = by_name(found)
    for own in evaluations.values():
        assert all(np.array_equal(one.exact, one.actual) for one in own)
        assert all((one.kinds == KINDS.index(EQUAL)).all() for one in own)
    negated = evaluations["body", "negated"]
    assert [one.actual.tolist() for one in negated] == [[-1, -3], [2, 6], [-8, -24]]
    doubled = evaluations["inner_body", "doubled"]  # no trip, one, two
    assert [one.trips for one in doubled] == [(1, 0), (2, 0), (2, 1)]
    assert [one.actual.tolist() for one in doubled] == [[-2, -6], [4, 12], [8, 24]]
    assert [one.actual.item() for one in evaluations["inner_body", "next"]] == [1, 1, 2]
    assert not any(computation == "main" for computation, _ in evaluations)


def test_another_value_is_outside_at_its_trip() -> None:
    def wrong(text: str, arrays: Sequence[Array]) -> Answer:
        outputs = [np.array(x) for x in interpreted(text, arrays).outputs or ()]
        for array in outputs:
            if array.shape == (4, 2) and array[0, 0] == -1:
                array[1, 1] += 1
        return Answer(tuple(outputs))

    found = nested_values(wrong, XLA_CPU, NESTED, (X,))
    assert is_outside(by_name(found)["body", "negated"]) == [False, True, False]
    first = found.first
    assert first is not None and (first.instruction, first.trips) == ("negated", (1,))
    assert first.verdict.first_outside == (1,)
    assert first.legal.low[1] <= 6 <= first.legal.high[1] < first.actual[1] == 7
    opened = found.undecided()
    assert opened.first is None
    (_, other, _) = by_name(opened)["body", "negated"]
    assert other.kinds.tolist() == [KINDS.index(EQUAL), KINDS.index(UNDETERMINED)]


def test_a_legal_compiler_is_followed_from_trip_to_trip() -> None:
    def reordered(text: str) -> str:
        last, y = "multiply(kx, rest.left)", "y = f32[8] "
        assert y + last in text
        product = f"xr = f32[8] multiply(x, rest.left)\n  {y}multiply(ks, xr)"
        return text.replace(y + last, product)

    found = found_by(reordered, CHAOS, SPREAD)
    evaluations = by_name(found)["body", "y"]
    assert len(evaluations) == 60
    assert np.abs(evaluations[-1].actual - evaluations[-1].exact).max() > 0.1
    assert found.first is None and not any(is_outside(evaluations))
    assert not any((one.kinds == KINDS.index(UNDETERMINED)).any() for one in evaluations)


def test_a_wrong_factor_is_found_in_the_first_trip_and_in_all_others() -> None:
    found = found_by(lambda text: text.replace("constant(3.9)", "constant(3.8999)"), CHAOS, SPREAD)
    assert found.first is not None
    assert (found.first.computation, found.first.instruction) == ("body", "ks")
    assert found.first.trips == (0,)
    assert all(is_outside(by_name(found)["body", "kx"]))
    # What follows from the compiler's own state is not to blame for it.
    assert not any(is_outside(by_name(found)["rest", "left"]))


def test_loops_over_whole_numbers_are_followed_too() -> None:
    module = hlo.parse("""HloModule squares
condition { s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  five = s32[] constant(5)
  ROOT less = pred[] compare(i, five), direction=LT }
body { s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  sum = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  square = s32[] multiply(i, i)
  more = s32[] add(sum, square)
  ROOT both = (s32[], s32[]) tuple(next, more) }
ENTRY main {
  zero = s32[] constant(0)
  init = (s32[], s32[]) tuple(zero, zero)
  loop = (s32[], s32[]) while(init), condition=condition, body=body
  ROOT result = s32[] get-tuple-element(loop), index=1
}""")
    found = found_by(lambda text: text.replace("multiply(i, i)", "add(i, i)"), module)
    assert is_outside(by_name(found)["body", "square"]) == [False, True, False, True, True]
    assert found.first is not None and found.first.trips == (1,)


def test_a_function_has_the_values_of_all_its_calls() -> None:
    evaluations = by_name(found_by(same, CHAOS, SPREAD))["rest", "left"]
    assert [one.trips for one in evaluations] == [(), *((trip,) for trip in range(60))]
    assert np.array_equal(evaluations[0].actual, 1 - SPREAD)


@pytest.mark.parametrize(("number", "branch"), [(0.3, ("up", "high")), (0.7, ("down", "low"))])
def test_only_the_branch_that_was_taken_has_values(number: float, branch: tuple[str, str]) -> None:
    found = by_name(found_by(same, hlo.parse(CHOICE), X, np.float32(number)))
    assert [*found] == [branch]
    ((one,),) = found.values()
    assert one.exact.tolist() == one.actual.tolist() == (-X if number > 0.5 else X + X).tolist()


def test_a_legal_other_branch_has_values_beside_none_of_the_exact_run() -> None:
    arrays = X, np.float32(0.5)
    exact = by_name(found_by(same, hlo.parse(CHOICE), *arrays))
    assert [*exact] == [("up", "high")]
    # As a compiler does whose tanh is larger in the last place.
    other = found_by(lambda text: text.replace("=LE", "=LT"), hlo.parse(CHOICE), *arrays)
    ((one,),) = by_name(other).values()
    assert [*by_name(other)] == [("down", "low")] and other.first is None
    assert one.exact is None and one.actual.tolist() == (-X).tolist()


def test_without_anything_inside_and_without_answers_there_is_nothing() -> None:
    alone = hlo.parse("HloModule m\nENTRY e { x = f32[3] parameter(0)  ROOT r = f32[3] abs(x) }")
    assert nested_values(interpreted, XLA_CPU, alone, (X,)) == NestedValues()
    for answer in (Answer(None, error="no tuples here"), Answer((X,))):
        found = nested_values(lambda text, arrays, a=answer: a, XLA_CPU, NESTED, (X,))  # type: ignore[misc]
        assert found == NestedValues()


def test_every_regression_shows_itself_the_exact_values() -> None:
    for path in sorted((TESTS / "regressions").glob("*.hlo")):
        module = hlo.parse(path.read_text())
        inside = nested_values(interpreted, XLA_CPU, module, from_seed(module, 0))
        assert inside.first is None, path.name


LOOPS = ("while", "conditional", "call", "add", "multiply", "subtract", "tanh", "exponential")


@settings(suppress_health_check=list(HealthCheck), max_examples=15)
@given(st.data())
def test_the_interpreter_shows_itself_the_exact_values(data: Any) -> None:
    module = data.draw(fuzz.modules(max_instructions=6))
    values = data.draw(fuzz.arguments(module))
    try:
        found = nested_values(interpreted, XLA_CPU, module, values)
    except Error:  # it has no result
        assume(False)
    assert found.first is None
    for _, _, evaluations in found.values:
        for one in evaluations:
            assert one.exact is not None and one.exact.tobytes() == one.actual.tobytes()


@settings(suppress_health_check=list(HealthCheck), max_examples=15)
@given(st.data(), st.integers(0, 99), st.sampled_from(MODES))
def test_no_legal_compiler_is_outside(data: Any, seed: int, mode: str) -> None:
    drawn = fuzz.modules(max_instructions=8, element_types=(F32, BF16), opcodes=LOOPS)
    module = data.draw(drawn)
    values = data.draw(fuzz.arguments(module))

    def legal(text: str, arrays: Sequence[Array]) -> Answer:
        peer = Perturbed(XLA_CPU, seed, mode)
        return Answer(tuple(arrays_of(peer(hlo.parse(text), *arrays, fuel=10_000))))

    try:
        found = nested_values(legal, XLA_CPU, module, values)
    except Error:
        assume(False)
    assert found.first is None
