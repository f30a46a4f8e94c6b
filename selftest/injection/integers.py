"""Bugs of integers, conversions and bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlo.types import ArrayShape, element_type_of
from hlo.values import Array
from interp.exact.conversion import converted
from interp.values import Value
from selftest.injection.bug import (
    BF16,
    F16,
    F32,
    F64,
    Call,
    Family,
    bits_of,
    op,
    operand,
    result,
    signed,
    unsigned,
    where,
    with_signs_of,
)

_integers = Family("integers")
_conversions = Family("conversions")


def _wide(function: Any) -> Any:
    """Make the bug of a formula computed in 64 bits and saturated to the operands' type."""

    def wrong(call: Call) -> Value:
        if any(x.dtype.kind not in "iu" or x.dtype.itemsize > 4 for x in call.operands):
            return None
        limits = np.iinfo(call.operands[0].dtype)
        value = function(*(x.astype(np.int64) for x in call.operands))
        return np.clip(value, limits.min, limits.max).astype(limits.dtype)

    return wrong


def _masked_shift(opcode: str) -> Any:
    """Make the bug of shifting by the amount modulo the width, as x86 does."""

    def wrong(call: Call) -> Value:
        value, amount = call.operands
        return op(opcode)(value, amount & amount.dtype.type(bits_of(value) - 1))

    return wrong


def _as_bits(count: int) -> Any:
    """Make the bug of computing in fewer bits and extending the result."""

    def wrong(call: Call) -> Value:
        dtype = call.operands[0].dtype
        if dtype.kind not in "iu" or dtype.itemsize * 8 <= count:
            return None
        narrow = np.dtype(f"{dtype.kind}{count // 8}")
        return np.asarray(call(*(x.astype(narrow) for x in call.operands))).astype(dtype)

    return wrong


_SHIFTS = "shift-left shift-right-arithmetic shift-right-logical"

INTEGERS = (
    _integers("divide", "divide: rounds down", _wide(
        lambda x, y: np.where(y == 0, -1, x // np.where(y == 0, 1, y))), "signed"),
    _integers("divide", "divide: rounds to nearest", _wide(
        lambda x, y: np.where(y == 0, -1, np.round(x / np.where(y == 0, 1, y))).astype(np.int64)),
        "signed unsigned"),
    _integers("remainder", "remainder: of integers, of the divisor's sign", _wide(
        lambda x, y: np.where(y == 0, x, x % np.where(y == 0, 1, y))), "signed"),
    _integers("divide", "divide: of integers by zero gives zero", where(lambda x, y: y == 0, 0),
              "signed unsigned"),
    _integers("remainder", "remainder: by zero gives zero", where(lambda x, y: y == 0, 0),
              "signed unsigned"),
    _integers("divide", "divide: MIN / -1 saturates", _wide(
        lambda x, y: np.where(y == 0, -1, np.trunc(x / np.where(y == 0, 1, y))).astype(np.int64)),
        "signed"),
    *_integers.each("divide remainder", "unsigned as signed", with_signs_of(signed), "unsigned"),
    *_integers.each("divide remainder", "signed as unsigned", with_signs_of(unsigned), "signed"),
    *_integers.each("maximum minimum", "unsigned as signed", with_signs_of(signed), "unsigned"),
    *_integers.each("maximum minimum", "signed as unsigned", with_signs_of(unsigned), "signed"),
    *(bug for opcode in _SHIFTS.split() for bug in _integers.each(
        opcode, "amount modulo the width", _masked_shift(opcode), "signed unsigned")),
    *_integers.each(_SHIFTS, "amount off by one", operand(1, lambda y: y + y.dtype.type(1)
                                                           if y.dtype.kind in "iu" else None)),
    *_integers.each("add subtract multiply negate", "in 16 bits", _as_bits(16)),
    *_integers.each("multiply divide power", "in 32 bits", _as_bits(32)),
    _integers("add", "add: saturates", _wide(np.add), "signed unsigned"),
    _integers("subtract", "subtract: saturates", _wide(np.subtract), "signed unsigned"),
    _integers("multiply", "multiply: saturates", _wide(np.multiply), "signed unsigned"),
    _integers("multiply", "multiply: through f32", lambda c: (
        np.multiply(*(x.astype(F32) for x in c.operands)).astype(np.int64).astype(
            c.operands[0].dtype)), "signed"),
    _integers("negate", "negate: saturates", _wide(np.negative), "signed"),
    _integers("abs", "abs: saturates", _wide(np.abs), "signed"),
    _integers("power", "power: a negative exponent gives zero", where(
        lambda x, y: y < 0, 0), "signed"),
    _integers("count-leading-zeros", "count-leading-zeros: of 32 bits", result(
        lambda x: x + x.dtype.type(32 - bits_of(x)) if bits_of(x) < 32 else None)),
    _integers("popcnt", "popcnt: of the value extended", lambda c: (
        np.where(c.operands[0] < 0, 32 - bits_of(c.operands[0]), 0).astype(c.operands[0].dtype)
        + c() if c.operands[0].dtype.kind == "i" and 8 <= bits_of(c.operands[0]) < 32 else None)),
    _integers("sign", "sign: unsigned as signed", lambda c: op("sign")(signed(c.operands[0])).view(
        c.operands[0].dtype), "unsigned"),
    _integers("not", "not: of pred as of a byte", lambda c: np.ones_like(c.operands[0]), "pred"),
    _integers("add", "add: of pred is exclusive", lambda c: np.logical_xor(*c.operands), "pred"),
    _integers("mulhi", "mulhi: the low half", lambda c: op("multiply")(*c.operands)),
    _integers("mulhi", "mulhi: of the other signedness", lambda c: op("mulhi")(*(
        unsigned(x) if x.dtype.kind == "i" else signed(x) for x in c.operands)).view(
            c.operands[0].dtype) if c.operands[0].dtype.kind in "iu" else None),
)  # fmt: skip


def _from(kinds: str, change: Any, to: str = "") -> Any:
    """Make the bug of a conversion between kinds of types: a function of operand and target
    type."""

    def wrong(call: Call) -> Value:
        shape = call.attributes.get("shape")
        value = call.operands[0]
        if not isinstance(shape, ArrayShape) or shape.element_type.dtype is None:
            return None
        target = shape.element_type.numpy
        if value.dtype.kind not in kinds or (to and target.kind not in to):
            return None
        return change(value, target)

    return wrong


def _wraps(value: Array, target: Any) -> Value:
    safe = np.where(np.isfinite(value) & (np.abs(value) < 2.0**62), value, 0)
    return safe.astype(np.int64).astype(target)


def _cut(value: Array, target: Any) -> Value:
    """Convert by truncation instead of rounding to nearest."""
    if (value.dtype, target) not in ((F64, F32), (F32, F16), (F32, BF16), (F64, BF16), (F64, F16)):
        return None
    nearest = value.astype(target)
    over = np.abs(nearest.astype(F64)) > np.abs(value.astype(F64))
    return np.where(over, np.nextafter(nearest, np.zeros_like(nearest)), nearest)


def _extended(value: Array, target: Any, change: Any) -> Value:
    if value.dtype.itemsize >= target.itemsize:
        return None
    return change(value).astype(target)


def _saturated(value: Array, target: Any) -> Value:
    if value.dtype.itemsize <= target.itemsize or value.dtype.kind != target.kind:
        return None
    limits = np.iinfo(target)
    return np.clip(value, limits.min, limits.max).astype(target)


def _through(dtype: Any) -> Any:
    def change(value: Array, target: Any) -> Value:
        middle = element_type_of(np.dtype(dtype))
        last = element_type_of(target)
        if middle is None or last is None or target == dtype:
            return None
        return converted(converted(value, middle), last)

    return change


def _finite(value: Array, target: Any) -> Value:
    if target not in (F16, BF16, F32) or value.dtype.itemsize <= target.itemsize:
        return None
    nearest = value.astype(target)
    most = np.nextafter(np.asarray(np.inf, target), np.asarray(0, target))
    return np.where(np.isinf(nearest), np.copysign(most, nearest.astype(F32)), nearest)


def _rounded(function: Any) -> Any:
    return _from("fV", lambda v, t: converted(
        function(v.astype(F64)), element_type_of(t)), "iu")  # type: ignore[arg-type]  # fmt: skip


def _reversed_bytes(value: Array) -> Array | None:
    return value.byteswap() if value.dtype.itemsize > 1 and value.dtype.kind in "iuf" else None


CONVERSIONS = (
    _conversions("convert", "convert: float to integer wraps", _from("f", _wraps, "iu")),
    _conversions("convert", "convert: NaN to the least integer", where(
        np.isnan, -128.0), "float"),
    _conversions("convert", "convert: float to integer rounds to nearest", _rounded(np.rint)),
    _conversions("convert", "convert: float to integer rounds down", _rounded(np.floor)),
    _conversions("convert", "convert: float to integer rounds up", _rounded(np.ceil)),
    _conversions("convert", "convert: negative floats to unsigned wrap", _from(
        "f", lambda v, t: np.where(v < 0, _wraps(v, t), v.astype(t)), "u")),
    _conversions("convert", "convert: signed to float as unsigned", _from(
        "i", lambda v, t: unsigned(v).astype(t), "fV")),
    _conversions("convert", "convert: unsigned to float as signed", _from(
        "u", lambda v, t: signed(v).astype(t), "fV")),
    _conversions("convert", "convert: signed extended with zeros", _from(
        "i", lambda v, t: _extended(v, t, unsigned), "iu")),
    _conversions("convert", "convert: unsigned extended with the sign", _from(
        "u", lambda v, t: _extended(v, t, signed), "iu")),
    _conversions("convert", "convert: integers saturate instead of wrapping", _from(
        "iu", _saturated, "iu")),
    _conversions("convert", "convert: true is -1", _from(
        "b", lambda v, t: (-v.astype(np.int8)).astype(t), "iufV")),
    _conversions("convert", "convert: true is 255", _from(
        "b", lambda v, t: (v.astype(np.int32) * 255).astype(t), "iufV")),
    _conversions("convert", "convert: to pred by the integer part", _from(
        "f", lambda v, t: np.trunc(v) != 0, "b")),
    _conversions("convert", "convert: to pred by the lowest bit", _from(
        "iu", lambda v, t: (v & v.dtype.type(1)) != 0, "b")),
    _conversions("convert", "convert: NaN to pred is false", _from(
        "f", lambda v, t: (v != 0) & ~np.isnan(v), "b")),
    _conversions("convert", "convert: low bits cut off", _from("f", _cut)),
    _conversions("convert", "convert: overflow to the largest number", _from("f", _finite)),
    _conversions("convert", "convert: integers to f64 through f32", _from("iu", _through(F32))),
    _conversions("convert", "convert: to narrower floats through bf16", _from(
        "f", _through(BF16))),
    _conversions("convert", "convert: imaginary part kept as magnitude", _from(
        "c", lambda v, t: np.abs(v).astype(t), "f")),
    _conversions("reduce-precision", "reduce-precision: dropped", lambda c: c.operands[0]),
    _conversions("reduce-precision", "reduce-precision: one bit more", lambda c: c(
        mantissa_bits=c.attributes["mantissa_bits"] + 1)),
    _conversions("reduce-precision", "reduce-precision: one bit less", lambda c: c(
        mantissa_bits=max(c.attributes["mantissa_bits"] - 1, 0))),
    _conversions("reduce-precision", "reduce-precision: exponents not limited", lambda c: c(
        exponent_bits=11)),
    _conversions("bitcast-convert", "bitcast-convert: bytes reversed", operand(
        0, _reversed_bytes)),
    _conversions("bitcast-convert", "bitcast-convert: big end first", result(
        lambda x: np.flip(x, -1) if x.ndim else None)),
    _conversions("bitcast-convert", "bitcast-convert: converts the value", lambda c: converted(
        c.operands[0], c.attributes["shape"].element_type)),
    _conversions("stochastic-convert", "stochastic-convert: random bits ignored", operand(
        1, np.zeros_like)),
    _conversions("stochastic-convert", "stochastic-convert: the other way round", operand(
        1, np.invert)),
)  # fmt: skip

BUGS = (*INTEGERS, *CONVERSIONS)
