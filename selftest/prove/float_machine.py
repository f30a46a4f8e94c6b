"""NumPy machines of the fast sequences, whose values are float32 or float64 arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from hlo.elementary.double_double import to_odd, two_product, two_sum
from hlo.elementary.fast import evaluate_fast, evaluate_fast_f64
from hlo.elementary.machine import Condition, Machine
from hlo.elementary.pi import pi
from hlo.values import Array
from interp.exact.elementary_machine import NumpyMachine

_BITS = 300
_TWO_OVER_PI: int = math.floor(2 / pi(_BITS) * 2**_BITS)


@dataclass(frozen=True, slots=True)
class NumpyFloatMachine:
    """A machine of float32 arrays; ``once`` says whether fused operations round once."""

    once: bool
    wide: Machine[Array] = field(default_factory=NumpyMachine)

    def fused(self, a: Array, b: Array | float, c: Array | float) -> Array:
        """Compute a * b + c; rounded once, it is the float64 sum rounded to odd, then rounded.

        The product of two float32 is exact in float64, and 53 bits rounded to odd are more than
        2 * 24 + 2: rounding those to float32 is innocuous (Boldo and Melquiond, IEEE TC 57(4)).
        """
        if not self.once:
            return np.asarray(np.float32(a) * np.float32(b) + np.float32(c))
        product = np.float32(a).astype(np.float64) * np.float32(b)
        total, error = two_sum(product, np.float32(c).astype(np.float64) + product * 0.0)
        word = np.asarray(total).view(np.int64)
        inexact = (error != 0) & np.isfinite(total) & np.isfinite(error) & (word & 1 == 0)
        # Toward the error: away from zero where it has the sum's sign.
        step = np.where((error > 0) == (total > 0), 1, -1)
        odd = np.where(inexact, word + step, word).view(np.float64)
        return np.asarray(odd.astype(np.float32))

    def select(
        self, condition: Condition, on_true: Array | float, on_false: Array | float
    ) -> Array:
        return np.where(np.asarray(condition), np.float32(on_true), np.float32(on_false))

    def equal(self, lhs: Array, rhs: Array | float) -> Condition:
        return np.equal(lhs, rhs)

    def absolute(self, x: Array) -> Array:
        return np.absolute(x)

    def sqrt(self, x: Array) -> Array:
        return np.sqrt(x)

    def bits(self, x: Array) -> Array:
        return np.asarray(x).view(np.int32)

    def from_bits(self, word: Any) -> Array:
        return np.asarray(word).view(np.float32)

    def residual(self, a: Array, b: Array, c: Array | float) -> Array:
        if self.once:
            return self.fused(-a, b, c)
        return self.narrowed(np.float64(c) - self.widened(a) * self.widened(b))

    def widened(self, x: Array) -> Array:
        return np.asarray(x).astype(np.float64)

    def narrowed(self, x: Array) -> Array:
        return np.asarray(x).astype(np.float32)

    def low_word(self, x: Array) -> Array:
        return np.asarray(x).view(np.int64).astype(np.int32)

    def quarter_turns(self, x: Array) -> tuple[Array, Array, Array]:
        words = np.asarray(x).view(np.uint32) & 0x7FFFFFFF
        turns = np.array(list(map(_quarter_turns, words.ravel().tolist())), np.uint64)
        turns = turns.reshape(words.shape)
        quadrant = (turns + np.uint64(1 << 61)) >> np.uint64(62)
        rest = (turns - (quadrant << np.uint64(62))).view(np.int64)
        high = rest.astype(np.float32)
        low = (rest - high.astype(np.int64)).astype(np.float32)
        unit = np.float32(2.0**-62)
        return quadrant.astype(np.uint32).view(np.int32), high * unit, low * unit


def _quarter_turns(word: int) -> int:
    """Compute 2/pi x modulo 4 with 62 bits of fraction, as ``hlo_quarter_turns_f32`` does: with 96
    bits of 2/pi."""
    exponent = max(word >> 23, 120) - 150
    window = (_TWO_OVER_PI >> (_BITS - 94 - exponent)) & (2**96 - 1)
    return ((word & 0x7FFFFF | 0x800000) * window >> 32) & (2**64 - 1)


def evaluated_fast(name: str, *operands: Array, once: bool) -> Array:
    """Evaluate ``hlo.elementary.fast.evaluate_fast`` on float32 arrays of one shape."""
    with np.errstate(all="ignore"):
        flat = [np.ascontiguousarray(operand, np.float32) for operand in operands]
        return np.asarray(evaluate_fast(name, NumpyFloatMachine(once), *flat))


class NumpyDoubleMachine(NumpyMachine):
    """A machine of float64 arrays; ``once`` says whether fused operations round once."""

    def __init__(self, once: bool) -> None:
        self._once = once

    def fused(self, a: Array, b: Array | float, c: Array | float) -> Array:
        """Compute a * b + c; rounded once by Boldo and Melquiond's algorithm (IEEE TC 57(4)), and
        in rational numbers where the product's error is no float64, as all is tiny.

        Huge factors, whose splitting overflows, are multiplied in two roundings.
        """
        plain = np.asarray(a * b + c)
        if not self._once:
            return plain
        a, b, c = np.broadcast_arrays(a, b, c)
        product = two_product(a, b)
        small = two_sum(c, product.low)
        large = two_sum(product.high, small.high)
        rest = to_odd(two_sum(small.low, large.low), self)
        fused = large.high + rest
        fused = np.where(np.isfinite(fused) & (fused != 0), fused, plain)
        for at in np.argwhere((np.abs(plain) < 2.0**-900) & (a != 0) & (b != 0)).tolist():
            factors = Fraction(float(a[*at])) * Fraction(float(b[*at]))
            exact = factors + Fraction(float(c[*at]))
            fused[*at] = float(exact) if exact else plain[*at]
        return fused

    def product_error(self, a: Array, b: Array | float, product: Array) -> Array:
        return np.asarray(two_product(*np.broadcast_arrays(a, b)).low)


def evaluated_fast_f64(name: str, *operands: Array, once: bool) -> Array:
    """Evaluate ``hlo.elementary.fast.evaluate_fast_f64`` on float64 arrays of one shape."""
    with np.errstate(all="ignore"):
        flat = [np.ascontiguousarray(operand, np.float64) for operand in operands]
        return np.asarray(evaluate_fast_f64(name, NumpyDoubleMachine(once), *flat))
