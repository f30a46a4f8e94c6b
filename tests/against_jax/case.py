"""A row of the tables: a function of JAX, what it is given, and how far results may differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PRED = ("pred",)
SIGNED = ("s2", "s4", "s8", "s16", "s32", "s64")
UNSIGNED = ("u2", "u4", "u8", "u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("f32", "f64", "bf16", "f16")
WIDE = ("f32", "f64")
NARROW = (
    "f8e4m3fn", "f8e5m2", "f8e4m3b11fnuz", "f8e4m3fnuz", "f8e5m2fnuz", "f8e3m4", "f8e4m3",
    "f8e8m0fnu", "f4e2m1fn",
)  # fmt: skip
COMPLEX = ("c64", "c128")
INEXACT = FLOATS + NARROW + COMPLEX
REAL = FLOATS + INTEGERS + NARROW
NUMBERS = FLOATS + INTEGERS + NARROW + COMPLEX
ALL = NUMBERS + PRED
# What most programs are made of: enough for those that are made of other rows' instructions.
USUAL = ("f32", "s32", "bf16", "f64", "u8", "c64", "pred")
ONE = ("f32",)


@dataclass(frozen=True, slots=True)
class Bound:
    """How far a float result may be from the exact one, in units of the type's epsilon: ``ulps``
    times the element plus ``scale`` times the largest element of the result. ``why`` says why."""

    ulps: float
    scale: float
    why: str


EXACT = Bound(0, 0, "moves data, or is rounded once in XLA too")
ELEMENTARY = Bound(6, 0, "XLA:CPU's functions of f32 err by up to 5.4 ULP (erf)")
COMPOSITE = Bound(64, 4, "tens of instructions, each with its error")
SUM = Bound(4, 16, "sums of tens of addends, in any order and with any intermediate type")
PRODUCT = Bound(64, 0, "products of tens of factors, in any order")
UNSTABLE = Bound(2048, 256, "long chains with cancellation")
COMPLEX_PARTS = Bound(16, 0, "XLA's complex functions are composed; relative to the magnitude")


@dataclass(frozen=True, slots=True)
class Case:
    """``name`` is the function's, then ``/`` and the variant. Each of ``operands`` is
    ``type[dims]:fill`` (T stands for each of ``types``; see operands.py)."""

    name: str
    function: Callable[..., Any]
    operands: tuple[str, ...]
    types: tuple[str, ...] = ALL
    bound: Bound = EXACT
    complex_bound: Bound = EXACT

    @property
    def subject(self) -> str:
        """The function's name."""
        return self.name.partition("/")[0]


def row(
    name: str,
    function: Callable[..., Any],
    *operands: str,
    types: tuple[str, ...] = ALL,
    bound: Bound = EXACT,
    complex_bound: Bound | None = None,
) -> Case:
    return Case(name, function, operands, types, bound, complex_bound or bound)
