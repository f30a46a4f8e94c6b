"""Integer arithmetic: every case has a result (hlo_reference 6.2), all modulo 2**bits.

Operands are arrays of one native integer type, at least 8 bits wide. Types narrower than that are
computed in 8 bits: ``bits`` is the width of the type itself, to which the caller wraps the result.
"""

from __future__ import annotations

import numpy as np

from hlo.values import Array

_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_SIGNED = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
_DOUBLED = {
    np.dtype(narrow): np.dtype(wide)
    for narrow, wide in (
        (np.int8, np.int16),
        (np.int16, np.int32),
        (np.int32, np.int64),
        (np.uint8, np.uint16),
        (np.uint16, np.uint32),
        (np.uint32, np.uint64),
    )
}


def pattern(operand: Array, bits: int) -> Array:
    """Return the bits of integers, as unsigned integers."""
    unsigned: Array = operand.view(_UNSIGNED[operand.dtype.itemsize])
    low_bits: Array = unsigned & unsigned.dtype.type(2**bits - 1)
    return low_bits


def divide(lhs: Array, rhs: Array, bits: int) -> Array:
    """Divide, truncating towards zero; x/0 is all ones, MIN/-1 is MIN."""
    del bits
    divisor = np.where(rhs == 0, rhs.dtype.type(1), rhs)
    # NumPy's // rounds down; without the remainder the quotient is exact.
    quotient = (lhs - np.fmod(lhs, divisor)) // divisor
    return np.where(rhs == 0, ~rhs.dtype.type(0), quotient)


def remainder(lhs: Array, rhs: Array, bits: int) -> Array:
    """Compute the remainder with the sign of the dividend; x%0 is x, MIN%-1 is 0."""
    del bits
    return np.where(rhs == 0, lhs, np.fmod(lhs, np.where(rhs == 0, rhs.dtype.type(1), rhs)))


def power(lhs: Array, rhs: Array, bits: int) -> Array:
    """Compute the mathematical power modulo 2**bits; a negative exponent is trunc(1 /
    lhs**|rhs|)."""
    exponent = pattern(rhs, bits)
    result, square = np.ones_like(lhs), lhs
    for bit in range(bits):
        odd = (exponent >> exponent.dtype.type(bit)) & exponent.dtype.type(1)
        result = np.where(odd == 1, result * square, result)
        square = square * square
    # 1 / lhs**|rhs| has magnitude below 1 unless lhs is 1 or -1.
    parity = rhs & rhs.dtype.type(1)
    reciprocal = np.where((lhs == 1) | (np.abs(lhs) == 1) & (parity == 0), 1, 0)
    reciprocal = np.where((lhs < 0) & (np.abs(lhs) == 1) & (parity == 1), -1, reciprocal)
    return np.where(rhs < 0, reciprocal.astype(lhs.dtype), result)


def shift_left(lhs: Array, rhs: Array, bits: int) -> Array:
    """Shift left; zero once the amount, taken unsigned, reaches the width."""
    amount = pattern(rhs, bits)
    shifted = pattern(lhs, bits) << np.minimum(amount, amount.dtype.type(bits - 1))
    return np.where(amount < bits, shifted, 0).astype(shifted.dtype).view(lhs.dtype)


def shift_right_logical(lhs: Array, rhs: Array, bits: int) -> Array:
    """Shift right, filling with zeros; zero once the amount, taken unsigned, reaches the width."""
    amount = pattern(rhs, bits)
    shifted = pattern(lhs, bits) >> np.minimum(amount, amount.dtype.type(bits - 1))
    return np.where(amount < bits, shifted, 0).astype(shifted.dtype).view(lhs.dtype)


def shift_right_arithmetic(lhs: Array, rhs: Array, bits: int) -> Array:
    """Shift right; all copies of the sign once the amount, taken unsigned, reaches the width."""
    amount = pattern(rhs, bits)
    signed = _signed(lhs, bits)
    limited = np.minimum(amount, amount.dtype.type(bits - 1)).view(signed.dtype)
    result: Array = (signed >> limited).view(lhs.dtype)
    return result


def multiply_high(lhs: Array, rhs: Array, bits: int) -> Array:
    """Return the high half of the product of twice the width."""
    if lhs.dtype in _DOUBLED:
        wide = _DOUBLED[lhs.dtype]
        return ((lhs.astype(wide) * rhs.astype(wide)) >> wide.type(bits)).astype(lhs.dtype)
    high = _multiply_high_unsigned(lhs.view(np.uint64), rhs.view(np.uint64)).view(lhs.dtype)
    if lhs.dtype == np.uint64:
        return high
    zero = lhs.dtype.type(0)  # x as unsigned is x + 2**64 where it is negative
    return high - np.where(lhs < 0, rhs, zero) - np.where(rhs < 0, lhs, zero)


def population_count(operand: Array, bits: int) -> Array:
    """Return the number of one bits."""
    return np.bitwise_count(pattern(operand, bits)).astype(operand.dtype)


def count_leading_zeros(operand: Array, bits: int) -> Array:
    """Return the number of zero bits above the highest one; the width for zero."""
    smeared = pattern(operand, bits)
    for distance in (1, 2, 4, 8, 16, 32):
        if distance < bits:
            smeared = smeared | smeared >> smeared.dtype.type(distance)
    return (bits - np.bitwise_count(smeared)).astype(operand.dtype)


def _signed(operand: Array, bits: int) -> Array:
    """Reinterpret integers as signed, with the sign bit at ``bits - 1``."""
    signed = operand.view(_SIGNED[operand.dtype.itemsize])
    spare = signed.dtype.type(8 * operand.dtype.itemsize - bits)
    result: Array = (signed << spare) >> spare
    return result


def _multiply_high_unsigned(lhs: Array, rhs: Array) -> Array:
    """Compute the high word of a product of 64-bit words from products of 32-bit halves."""
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a, b, c, d = lhs >> half, lhs & low, rhs >> half, rhs & low
    # (2**32 - 1)**2 + 2**32 - 1 < 2**64: neither of the two sums overflows.
    middle = a * d + (b * d >> half)
    carry = b * c + (middle & low)
    result: Array = a * c + (middle >> half) + (carry >> half)
    return result
