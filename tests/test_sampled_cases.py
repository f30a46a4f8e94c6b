"""Few of a test's cases have every value of its parameters, and as many pairs as fit."""

from __future__ import annotations

from itertools import product

import pytest
from sampled_cases import chosen

pytest_plugins = ["pytester"]


def test_values_come_first_and_pairs_next() -> None:
    cases = list(product(("a", "b", "c"), ("x", "y"), (0, 1)))
    values = {value for case in cases for value in case}
    assert {v for n in chosen(cases, 3) for v in cases[n]} == values
    pairs = {(a, b) for case in cases for a, b in ((case[0], case[1]), (case[1], case[2]))}
    few = [cases[n] for n in chosen(cases, 6)]
    assert {(a, b) for case in few for a, b in ((case[0], case[1]), (case[1], case[2]))} == pairs


def test_cases_of_one_parameter_are_spread() -> None:
    assert chosen([(n,) for n in range(9)], 3) == {0, 8, 4}
    assert chosen([(0,), (1,)], 5) == {0, 1}
    assert chosen([], 5) == set()


@pytest.mark.parametrize(("options", "count"), [([], 2), (["--thorough"], 6)])
def test_thorough_runs_have_all_cases(
    pytester: pytest.Pytester, options: list[str], count: int
) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.sampled(2)
        @pytest.mark.parametrize("n", range(6))
        def test(n):
            pass
    """)
    run = pytester.inline_run("-p", "sampled_cases", "-p", "no:cacheprovider", *options)
    run.assertoutcome(passed=count)
