"""Conversions between element types (hlo_reference 6.1 and 6.3): every pair has one rounding."""

from __future__ import annotations

import numpy as np

from hlo.types import F32, F64, ElementType, element_type_of
from hlo.values import Array
from interp.exact.rounding import rounded, rounded_integer

_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_MANTISSA_BITS = {"f64": 52, "f32": 23, "f16": 10, "bf16": 7}
_COMPONENT = {np.dtype(np.complex64): F32, np.dtype(np.complex128): F64}


def type_of(operand: Array) -> ElementType:
    """Return the element type of an array that is a value of the language."""
    element_type = element_type_of(operand.dtype)
    assert element_type is not None, operand.dtype
    return element_type


def is_native(element_type: ElementType) -> bool:
    """Test whether NumPy itself computes with a type, as it does not with ml_dtypes' types."""
    if element_type.is_float:
        return element_type in (F32, F64)
    return not element_type.is_integer or element_type.bits >= 8


def widened(operand: Array) -> Array:
    """Convert to a type that NumPy computes with: float64 for floats narrower than float32, 8 bits
    for narrower integers. No value changes."""
    element_type = type_of(operand)
    if is_native(element_type):
        return operand
    if element_type.is_float:
        return operand.astype(np.float64)
    return operand.astype(np.int8 if element_type.kind == "signed" else np.uint8)


def converted(operand: Array, target: ElementType) -> Array:
    """Convert between element types. To integers NaN becomes 0, floats saturate, and integers wrap;
    to pred anything but zero is true; to floats there is one rounding to nearest even. A complex
    number that becomes real loses its imaginary part."""
    source = type_of(operand)
    if source is target:
        return operand
    if source.is_complex and not target.is_complex:
        return converted(operand.real, target)
    if target.kind == "pred":
        return np.asarray(widened(operand) != 0)
    if target.is_complex:
        component = _COMPONENT[target.numpy]
        if source.is_complex:
            return operand.astype(target.numpy)
        return converted(operand, component).astype(target.numpy)
    if target.is_float:
        return _to_float(operand, source, target)
    return _float_to_integer(operand, target) if source.is_float else wrapped(operand, target)


def wrapped(operand: Array, target: ElementType) -> Array:
    """Convert integers or pred to an integer type, modulo 2**bits."""
    wide = operand.astype(np.int8) if operand.dtype == np.bool_ else widened(operand)
    if target.bits < 8:
        wide = wide.astype(np.int8 if target.kind == "signed" else np.uint8)
    return wide.astype(target.numpy, copy=False)


def _to_float(operand: Array, source: ElementType, target: ElementType) -> Array:
    if source.kind == "pred":
        return operand.astype(target.numpy)
    if source.is_integer:
        return rounded_integer(widened(operand), target)
    return rounded(operand.astype(np.float64), target)


def _float_to_integer(operand: Array, target: ElementType) -> Array:
    values = np.trunc(operand.astype(np.float64))
    signed = target.kind == "signed"
    low, high = (-(2 ** (target.bits - 1)) if signed else 0), 2 ** (target.bits - signed)
    inside = (values >= low) & (values < high)  # both bounds are exact in float64
    integers = np.where(inside, values, 0.0).astype(np.int64 if signed else np.uint64)
    integers = np.where(values >= high, integers.dtype.type(high - 1), integers)
    return wrapped(np.where(values < low, integers.dtype.type(low), integers), target)


def reduced_precision(operand: Array, exponent_bits: int, mantissa_bits: int) -> Array:
    """Round floats to fewer exponent and mantissa bits: to nearest even, overflow to infinity,
    below the normal range to a zero of the same sign. NaN stays NaN, but becomes infinity where no
    mantissa bit is left to tell them apart. Types of less than 16 bits are reduced in float32, as
    XLA does, and rounded to their own type again."""
    element_type = type_of(operand)
    if element_type.bits < 16:
        reduced = reduced_precision(operand.astype(np.float32), exponent_bits, mantissa_bits)
        return rounded(reduced.astype(np.float64), element_type)
    stored = _MANTISSA_BITS[element_type.name]
    exponents = element_type.bits - 1 - stored
    bits = operand.view(_UNSIGNED[operand.dtype.itemsize])
    word = bits.dtype.type
    sign_mask = word(1 << (element_type.bits - 1))
    magnitude = bits & ~sign_mask
    infinity = word(((1 << exponents) - 1) << stored)
    if mantissa_bits < stored:
        dropped = stored - mantissa_bits
        last = (magnitude >> word(dropped)) & word(1)
        magnitude = magnitude + word((1 << (dropped - 1)) - 1) + last
        magnitude = magnitude & ~word((1 << dropped) - 1)
    if exponent_bits < exponents:
        bias, reduced_bias = (1 << (exponents - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        exponent = magnitude >> word(stored)
        magnitude = np.where(exponent > word(bias + reduced_bias), infinity, magnitude)
        magnitude = np.where(exponent <= word(bias - reduced_bias), word(0), magnitude)
    result = (magnitude | (bits & sign_mask)).view(operand.dtype)
    is_nan = (bits & ~sign_mask) > infinity
    kept = operand if mantissa_bits else np.full_like(operand, np.inf)
    return np.where(is_nan, kept, result)


def stochastically_converted(operand: Array, random: Array, target: ElementType) -> Array:
    """Round floats to integers stochastically, as XLA's HloEvaluator: truncate, and move one
    further from zero where ``random`` is below the fraction scaled by 2**bits of ``random``. NaN
    becomes 0; large numbers saturate."""
    values = operand.astype(np.float64)
    magnitude = np.trunc(np.abs(values))
    scale = type_of(random).bits
    fraction = np.ldexp(np.abs(values) - magnitude, scale)
    finite = np.where(np.isfinite(fraction), fraction, 0.0)
    up = widened(random) < finite.astype(widened(random).dtype)
    return converted(np.copysign(magnitude + up, values), target)


def total_order(operand: Array) -> Array:
    """Map floats to integers in TOTALORDER: -NaN < -inf < ... < -0 < +0 < ... < NaN."""
    element_type = type_of(operand)
    storage = 8 * operand.dtype.itemsize
    unsigned = operand.view(_UNSIGNED[operand.dtype.itemsize])
    if element_type.name == "f8e8m0fnu":  # has no sign
        return unsigned
    # f4 and f6 are in the low bits of a byte, so their sign moves to the top. Flipping all bits but
    # the sign of negative floats makes integers that ascend as they do: -0 is -1, +0 is 0.
    bits = (unsigned << unsigned.dtype.type(storage - element_type.bits)).view(f"i{storage // 8}")
    magnitude = bits.dtype.type(2 ** (storage - 1) - 1)
    keys: Array = bits ^ ((bits >> bits.dtype.type(storage - 1)) & magnitude)
    if element_type.name.endswith("fnuz"):  # the NaN, where others have -0: below all, as in XLA
        return np.where(keys == -1, ~magnitude, keys + (keys < 0))
    return keys
