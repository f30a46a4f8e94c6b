"""Define the abstract machine that evaluates elementary functions: a few operations on float64.

A sequence is a Python function that uses only what is declared here. It cannot branch on a value
(conditions feed ``select`` only), so the same operations are performed for every input, and NumPy
arrays, C expressions and the proofs can all run it. A machine provides three kinds of things:

* values, IEEE 754 binary64: ``+ - * /``, each rounded to nearest even, never contracted to an FMA
  or reassociated, subnormals kept; unary ``-``; ``< <= > >=`` (false on NaN). A Python float may
  stand on either side (``2.0 * x``, ``1.0 / x``) and may be infinite or NaN.
* conditions, the results of comparisons: ``& | ~``, and ``select``.
* words, 64 bits: ``+ -`` modulo 2**64, ``& | ^`` with words or Python ints in [-2**63, 2**63), and
  ``<< >>`` by a Python int. ``>>`` may be arithmetic or logical: a word from 2**63 on is shifted
  only where the result is discarded.

Both sides of a ``select`` are evaluated. What a discarded lane holds (an overflow, a NaN, a shifted
garbage word) is of no consequence, so no operation may trap, and NumPy's warnings are to be
silenced. Results may go unused.
"""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeVar


class Value(Protocol):
    """Hold a float64, or a vector of them: whatever the machine computes at once."""

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
    """Hold the truth of a comparison, per lane."""

    def __and__(self, other: Any, /) -> Condition: ...
    def __or__(self, other: Any, /) -> Condition: ...
    def __invert__(self) -> Condition: ...


class Word(Protocol):
    """Hold 64 bits per lane: the encoding of a float64, or an integer."""

    def __add__(self, other: Any, /) -> Word: ...
    def __sub__(self, other: Any, /) -> Word: ...
    def __and__(self, other: Any, /) -> Word: ...
    def __or__(self, other: Any, /) -> Word: ...
    def __xor__(self, other: Any, /) -> Word: ...
    def __lshift__(self, other: int, /) -> Word: ...
    def __rshift__(self, other: int, /) -> Word: ...


V = TypeVar("V", bound=Value)


class Machine(Protocol[V]):
    """Provide the operations on values that Python has no operator for."""

    def select(self, condition: Condition, on_true: V | float, on_false: V | float) -> V:
        """Return the bits of ``on_true`` where ``condition`` holds, else those of ``on_false``."""

    def equal(self, lhs: V, rhs: V | float) -> Condition:
        """Compare by ``==`` of IEEE 754: -0 equals +0, NaN equals nothing."""

    def absolute(self, x: V) -> V:
        """Clear the sign bit, also of a NaN."""

    def sqrt(self, x: V) -> V:
        """Take the square root, correctly rounded: -0 for -0, NaN for negative numbers."""

    def bits(self, x: V) -> Word:
        """Return the encoding of ``x``."""

    def from_bits(self, word: Word) -> V:
        """Return the value that ``word`` encodes."""


SIGN = -(2**63)  # the sign bit, as an int64
MANTISSA_BITS = 52
BIAS = 1023
# The rounding constant: for |x| < 2**51 the sum x + ROUND is in [2**52, 2**53), where a last bit is
# worth 1, so the addition itself rounds x to the nearest integer (ties to even), and the low bits
# of the sum's encoding hold it. 1.5 and not 1: a negative x must not leave that interval.
# Throughout, ``biased`` names such a sum, and ``biased - ROUND`` is the integer as a float.
ROUND = 1.5 * 2.0**52


def power_of_two(biased: V, machine: Machine[V]) -> V:
    """Return 2**k for ``biased == k + ROUND`` and -1022 <= k <= 1023, by building its encoding.

    The low 12 bits of ``biased`` are k in two's complement; plus the bias they are the exponent
    field, which the shift brings into place while it drops all bits above them.
    """
    return machine.from_bits((machine.bits(biased) + BIAS) << MANTISSA_BITS)


def with_sign_of(x: V, sign: V, machine: Machine[V]) -> V:
    """Return ``x``, negated where ``sign`` is negative or -0."""
    return machine.from_bits(machine.bits(x) ^ (machine.bits(sign) & SIGN))


def horner(x: V, coefficients: tuple[float, ...]) -> V:
    """Evaluate the polynomial c[0] + c[1] x + c[2] x**2 + … (two or more c) by Horner's rule."""
    *rest, before_last, last = coefficients
    result = x * last + before_last
    for coefficient in reversed(rest):
        result = result * x + coefficient
    return result
