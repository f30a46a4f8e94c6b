"""Define the abstract machines of the fast sequences: a few operations on float32, or on float64.

``FloatMachine`` is as ``hlo/elementary/machine.py``, whose rules hold, with three differences:

* values are IEEE 754 binary32, words have 32 bits (Python ints beside them are in [-2**31, 2**31));
  a Python float beside a value is rounded to float32 first;
* ``fused(a, b, c)`` is ``a * b + c``, rounded once where the processor has that instruction and
  twice elsewhere: a sequence has to be right in both cases, and must not take the result for exact
  unless the product is;
* ``widened`` and ``narrowed`` go to float64 and back (rounded once), on which ``wide`` operates.
  A condition selects among values of the width that it compares: vectors of both widths in a loop
  have masks of two kinds.

``DoubleMachine``, for sequences in float64, is the machine of ``hlo/elementary/machine.py`` with
two more operations: ``fused``, as above, and ``product_error``, which is exact on every processor.
"""

from __future__ import annotations

from typing import Any, Protocol

from hlo.elementary.double_double import Pair
from hlo.elementary.machine import Condition, Machine, V, Word

SIGN = -(2**31)  # the sign bit, as an int32
MANTISSA_BITS = 23
BIAS = 127
# For |x| < 2**22 the sum x + ROUND is in [2**23, 2**24), where a last bit is worth 1: the addition
# rounds x to the nearest integer, which the low bits of the sum's encoding then hold.
ROUND = 1.5 * 2.0**23


class FusingMachine(Protocol[V]):
    """Provide what the machines of both widths have beyond ``hlo/elementary/machine.py``."""

    def fused(self, a: V, b: V | float, c: V | float) -> V:
        """Multiply and add: the product is kept exact on some processors, rounded on others."""


class DoubleMachine(FusingMachine[V], Machine[V], Protocol[V]):
    """Provide the operations on float64 that Python has no operator for."""

    def product_error(self, a: V, b: V | float, product: V) -> V:
        """Return a * b - product, exactly, for ``product``, that of a and b rounded to nearest.

        For factors below 2**996 whose product's last bit is above 2**-1074.
        """


class FloatMachine(FusingMachine[V], Protocol[V]):
    """Provide the operations on float32 that Python has no operator for."""

    @property
    def wide(self) -> Machine[Any]:
        """Return the machine of the float64 that ``widened`` gives."""

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

    def residual(self, a: V, b: V, c: V | float) -> V:
        """Return c - a * b: a fused operation, or the float64 difference from the exact product."""

    def widened(self, x: V) -> Any:
        """Return ``x`` as a float64, exactly."""

    def narrowed(self, x: Any) -> V:
        """Round a float64 to nearest, ties to even."""

    def low_word(self, x: Any) -> Word:
        """Return the low 32 bits of the encoding of a float64."""

    def quarter_turns(self, x: V) -> tuple[Word, V, V]:
        """Return 2/pi x as k + high + low: the low bits of an integer k, and |high + low| <= 1/2,
        by integers alone; for finite x >= 2**10, anything for others."""


def with_sign_of(x: V, sign: V, machine: FloatMachine[V]) -> V:
    """Return ``x``, negated where ``sign`` is negative or -0."""
    return machine.from_bits(machine.bits(x) ^ (machine.bits(sign) & SIGN))


def exact_product(a: V, b: V | float, machine: DoubleMachine[V]) -> Pair[V]:
    """Multiply with the rounding error: high + low == a * b."""
    high = a * b
    return Pair(high, machine.product_error(a, b, high))


def horner(x: V, coefficients: tuple[float, ...], machine: FusingMachine[V]) -> V:
    """Evaluate the polynomial c[0] + c[1] x + c[2] x**2 + … (two or more c) by Horner's rule."""
    *rest, before_last, last = coefficients
    result = machine.fused(x, last, before_last)
    for coefficient in reversed(rest):
        result = machine.fused(result, x, coefficient)
    return result


def divided(above: Pair[V], below: Pair[V], machine: DoubleMachine[V]) -> Pair[V]:
    """Divide a pair by a normalised one, to 2**-100; the result is not quite normalised."""
    inverse = 1.0 / below.high
    guess = above.high * inverse
    product = exact_product(guess, below.high, machine)
    rest = ((above.high - product.high) - product.low) + (above.low - guess * below.low)
    return Pair(guess, rest * inverse)


def quotient(above: Pair[V], below: Pair[V], machine: DoubleMachine[V]) -> V:
    """Divide a pair by a normalised one; rounded once but for 2**-100 of it."""
    result = divided(above, below, machine)
    return result.high + result.low
