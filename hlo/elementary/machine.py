"""The abstract machine that runs elementary functions: a few operations on float64.

A sequence is a Python function that only uses what stands here, so it takes the same branch-free
path for every value and serves NumPy arrays, C expressions and the proofs alike. Whoever runs it
provides three kinds of things:

* values, IEEE 754 binary64: ``+ - * /`` (each rounded to nearest even, never contracted or
  reassociated, subnormals kept), unary ``-``, ``< <= > >=`` (false on NaN) with values or Python
  floats on either side (``2.0 * x``, ``1.0 - x``, ``1.0 / x``); a float may be infinite or NaN;
* conditions, what comparisons give: ``& | ~``, for ``select`` only;
* words, 64 bits: ``+ -`` modulo 2**64, ``& | ^`` with words or Python ints in [-2**63, 2**63), and
  ``<< >>`` by a Python int. ``>>`` may be either shift: a word from 2**63 on is shifted only where
  the result is discarded.

Garbage in a lane that a later ``select`` discards, or that meets a NaN, is normal: no operation may
trap, and NumPy's warnings have to be silenced. A result may go unused.
"""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeVar


class Value(Protocol):
    """A float64, or as many as the machine holds in one."""

    def __add__(self, other: Any, /) -> Self: ...
    def __radd__(self, other: Any, /) -> Self: ...
    def __sub__(self, other: Any, /) -> Self: ...
    def __rsub__(self, other: Any, /) -> Self: ...
    def __mul__(self, other: Any, /) -> Self: ...
    def __rmul__(self, other: Any, /) -> Self: ...
    def __truediv__(self, other: Any, /) -> Self: ...
    def __rtruediv__(self, other: Any, /) -> Self: ...
    def __neg__(self) -> Self: ...
    def __lt__(self, other: Any, /) -> Condition: ...
    def __le__(self, other: Any, /) -> Condition: ...
    def __gt__(self, other: Any, /) -> Condition: ...
    def __ge__(self, other: Any, /) -> Condition: ...


class Condition(Protocol):
    """The truth of a comparison."""

    def __and__(self, other: Any, /) -> Condition: ...
    def __or__(self, other: Any, /) -> Condition: ...
    def __invert__(self) -> Condition: ...


class Word(Protocol):
    """64 bits."""

    def __add__(self, other: Any, /) -> Word: ...
    def __sub__(self, other: Any, /) -> Word: ...
    def __and__(self, other: Any, /) -> Word: ...
    def __or__(self, other: Any, /) -> Word: ...
    def __xor__(self, other: Any, /) -> Word: ...
    def __lshift__(self, other: int, /) -> Word: ...
    def __rshift__(self, other: int, /) -> Word: ...


V = TypeVar("V", bound=Value)


class Machine(Protocol[V]):
    """What a sequence may do to values beyond their operators."""

    def select(self, condition: Condition, on_true: V | float, on_false: V | float) -> V:
        """Per lane: the bits of one of the two."""

    def equal(self, lhs: V, rhs: V | float) -> Condition:
        """``==`` of IEEE 754: -0 equals +0, NaN equals nothing."""

    def absolute(self, x: V) -> V:
        """Clears the sign bit."""

    def sqrt(self, x: V) -> V:
        """Correctly rounded; -0 for -0, NaN below."""

    def bits(self, x: V) -> Word:
        """The encoding of ``x``."""

    def from_bits(self, word: Word) -> V:
        """The value encoded by ``word``."""


SIGN = -(2**63)  # the sign bit, as an int64
MANTISSA_BITS = 52
BIAS = 1023
ROUND = 1.5 * 2.0**52  # adding it rounds to an integer, which the low bits of the sum then hold


def power_of_two(biased: V, machine: Machine[V]) -> V:
    """2**k for ``biased == k + ROUND``, -1022 <= k <= 1023."""
    return machine.from_bits((machine.bits(biased) + BIAS) << MANTISSA_BITS)


def with_sign_of(x: V, sign: V, machine: Machine[V]) -> V:
    """``x``, negated where ``sign`` is negative or -0."""
    return machine.from_bits(machine.bits(x) ^ (machine.bits(sign) & SIGN))


def horner(x: V, coefficients: tuple[float, ...]) -> V:
    """The polynomial with these ``coefficients``, that of x**0 first; two or more of them."""
    *rest, before_last, last = coefficients
    result = x * last + before_last
    for coefficient in reversed(rest):
        result = result * x + coefficient
    return result
