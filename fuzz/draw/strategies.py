"""Provide the generators as Hypothesis strategies."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Concatenate, ParamSpec, TypeVar

from hypothesis import strategies as st

from fuzz.draw import loosening, programs, values
from fuzz.draw.choices import Choices

P = ParamSpec("P")
T = TypeVar("T")


class _Shrinking(Choices):
    """Draw choices from Hypothesis inside a test, which can shrink them."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def integer(self, low: int, high: int) -> int:
        return self.draw(_integers(low, high))

    def drew(self, what: str) -> None:
        """Ignore it: only seeded campaigns count."""

    def part(self, make: Callable[[], T]) -> T:
        return self.draw(_part(self, make))


_integers = cache(st.integers)  # a strategy that is there already is validated


@st.composite
def _part(draw: st.DrawFn, choices: _Shrinking, make: Callable[[], T]) -> T:
    """Mark what is drawn meanwhile as one span, for Hypothesis to shrink as a whole."""
    outer, choices.draw = choices.draw, draw
    try:
        return make()
    finally:
        choices.draw = outer


def strategy(make: Callable[Concatenate[Choices, P], T]) -> Callable[P, st.SearchStrategy[T]]:
    """Turn a function of :class:`Choices` into a function that returns a strategy."""

    @st.composite
    def drawn(draw: st.DrawFn, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return make(_Shrinking(draw), *args, **kwargs)

    drawn.__doc__ = make.__doc__
    return drawn


modules = strategy(programs.program)
computations = strategy(programs.computations)
single_op = strategy(programs.single_op)
arguments = strategy(values.arguments)
loosened = strategy(loosening.loosened)
