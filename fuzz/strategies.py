"""Hypothesis strategies of programs and of arguments for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from hypothesis import strategies as st

from fuzz import loosening, programs, values
from fuzz.choices import Choices

P = ParamSpec("P")
T = TypeVar("T")


class _Shrinking(Choices):
    """What Hypothesis draws, in a test."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def part(self, make: Callable[[], T]) -> T:
        return self._draw(st.builds(make))


def strategy(make: Callable[Concatenate[Choices, P], T]) -> Callable[P, st.SearchStrategy[T]]:
    """A function from choices as a function that gives a strategy."""

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
