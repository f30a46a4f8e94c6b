"""Describe the programs of this directory: a function of JAX, and the recipes of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Recipe = list[Any]


class Program(NamedTuple):
    """A JAX function, and the recipes of its arguments."""

    function: Callable[..., Any]
    arguments: list[Recipe]


def normal(*dims: int, dtype: str = "float32", scale: float = 1.0) -> Recipe:
    """Make a recipe of normal numbers."""
    return ["normal", [*dims], dtype, scale]


def integers(*dims: int, below: int, dtype: str = "int32") -> Recipe:
    """Make a recipe of integers from 0."""
    return ["randint", [*dims], dtype, 0, below]


def uniform(*dims: int, low: float = 0.0, high: float = 1.0) -> Recipe:
    """Make a recipe of numbers between two."""
    return ["uniform", [*dims], "float32", low, high]


def full(*dims: int, value: float, dtype: str = "float32") -> Recipe:
    """Make a recipe of one number repeated."""
    return ["full", [*dims], dtype, value]
