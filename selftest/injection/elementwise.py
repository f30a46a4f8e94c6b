"""Bugs of single elements: operands, functions, comparisons, special values, approximations."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlo.opcodes import ELEMENTARY, having
from hlo.values import Array
from interp.ops.elementwise import multiply
from interp.values import Value
from selftest.injection.bug import (
    BF16,
    F16,
    F32,
    F64,
    LEGAL,
    Bug,
    Call,
    Family,
    computed_as,
    given,
    off_by,
    op,
    operand,
    result,
    signed,
    swapped,
    through,
    unsigned,
    where,
    with_signs_of,
)

_operands = Family("operands")
_functions = Family("functions")
_comparisons = Family("comparisons")
_special = Family("special values")
_approximate = Family("approximations")
_precision = Family("precision")
_legal = Family(LEGAL)

_ARITHMETIC = "add subtract multiply divide remainder"

_INSTEAD = (
    *(("sine", "cosine"), ("cosine", "sine"), ("tanh", "tan"), ("tan", "tanh")),
    *(("tanh", "logistic"), ("logistic", "tanh"), ("exponential", "exponential-minus-one")),
    *(("exponential-minus-one", "exponential"), ("log", "log-plus-one"), ("log-plus-one", "log")),
    *(("sqrt", "rsqrt"), ("rsqrt", "sqrt"), ("cbrt", "sqrt"), ("erf", "tanh"), ("floor", "ceil")),
    *(("ceil", "floor"), ("round-nearest-even", "round-nearest-afz"), ("acos", "asin")),
    *(("round-nearest-afz", "round-nearest-even"), ("asin", "acos"), ("sinh", "asinh")),
    *(("cosh", "acosh"), ("asinh", "sinh"), ("atanh", "tanh"), ("and", "or"), ("or", "xor")),
    *(("xor", "or"), ("not", "negate"), ("maximum", "minimum"), ("minimum", "maximum")),
    *(("add", "subtract"), ("subtract", "add"), ("multiply", "add"), ("abs", "negate")),
    *(("real", "imag"), ("imag", "real"), ("shift-right-arithmetic", "shift-right-logical")),
    *(("shift-right-logical", "shift-right-arithmetic"), ("shift-left", "shift-right-logical")),
    *(("popcnt", "count-leading-zeros"), ("count-leading-zeros", "popcnt"), ("negate", "not")),
)

OPERANDS = (
    *_operands.each(
        "subtract divide remainder power atan2 shift-left shift-right-arithmetic"
        " shift-right-logical complex",
        "operands swapped",
        swapped(1, 0),
    ),
    _operands("select", "select: branches swapped", swapped(0, 2, 1)),
    _operands("clamp", "clamp: bounds swapped", swapped(2, 1, 0)),
    _operands("clamp", "clamp: lower bound and operand swapped", swapped(1, 0, 2)),
    _operands("clamp", "clamp: no lower bound", lambda c: op("minimum")(*c.operands[1:])),
    _operands("clamp", "clamp: no upper bound", lambda c: op("maximum")(*c.operands[:2])),
    *_operands.each(
        "add subtract multiply divide maximum minimum",
        "second operand dropped",
        lambda c: c.operands[0],
    ),
    *_operands.each(
        "add multiply maximum minimum and or", "first operand used twice", swapped(0, 0)
    ),
    _operands(
        "negate", "negate: dropped", lambda c: c.operands[0], "float signed unsigned complex"
    ),
    _operands("abs", "abs: dropped", lambda c: c.operands[0], "float signed"),
    _operands("not", "not: dropped", lambda c: c.operands[0]),
    _operands("clamp", "clamp: dropped", lambda c: c.operands[1]),
)

FUNCTIONS = tuple(
    _functions(one, f"{one} computed as {other}", computed_as(other)) for one, other in _INSTEAD
)


def _direction(before: str, after: str) -> Bug:
    def changed(direction: str) -> str | None:
        return after if direction == before else None

    return _comparisons("compare", f"compare: {before} as {after}", given(direction=changed))


def _negated(before: str, opposite: str) -> Bug:
    """Make the bug of computing a comparison as the negation of its opposite: wrong for NaN."""

    def wrong(call: Call) -> Value:
        is_it = call.attributes["direction"] == before
        return ~np.asarray(call(direction=opposite)) if is_it else None

    name = f"compare: {before} as not {opposite}"
    return _comparisons("compare", name, wrong, "float")


def _other_order(call: Call) -> Value:
    in_total = call.attributes.get("type") == "TOTALORDER"
    return call(type="" if in_total else "TOTALORDER")


COMPARISONS = (
    *map(_direction, ("LT", "LE", "GT", "GE"), ("LE", "LT", "GE", "GT")),
    *map(_direction, ("LT", "LE", "GT", "GE"), ("GT", "GE", "LT", "LE")),
    *map(_direction, ("EQ", "NE", "EQ", "NE"), ("NE", "EQ", "GE", "LT")),
    *map(_negated, ("LT", "LE", "GT", "GE", "NE"), ("GE", "GT", "LE", "LT", "EQ")),
    _comparisons("compare", "compare: NaN equals anything", where(
        lambda x, y: np.isnan(x) | np.isnan(y), 1.0), "float",
    ),
    _comparisons("compare", "compare: total order for partial, or the reverse", _other_order,
                 "float"),
    _comparisons("compare", "compare: signed as unsigned", with_signs_of(unsigned), "signed"),
    _comparisons("compare", "compare: unsigned as signed", with_signs_of(signed), "unsigned"),
    _comparisons("compare", "compare: f64 in f32", through(F32, [F64])),
    _comparisons("compare", "compare: f32 in bf16", through(BF16)),
    _comparisons("compare", "compare: 64 bits in 32", lambda c: (
        c(*(x.astype(np.int32) for x in c.operands)) if c.operands[0].dtype == np.int64 else None)),
    _comparisons("select", "select: predicate inverted", operand(0, lambda p: ~p)),
    _comparisons("select", "select: first predicate for all", operand(
        0, lambda p: np.broadcast_to(p.reshape(-1)[:1].reshape((1,) * p.ndim), p.shape)
        if p.size else None)),
)  # fmt: skip


def _nan(array: Array) -> Any:
    return np.isnan(array)


def _without_nan(number: int) -> Bug:
    """Make the bug of ignoring NaN in one operand, as C's fmax and fmin do."""
    which = ("left", "right")[number]
    return _special(
        "maximum minimum",
        f"maximum, minimum: NaN on the {which} is lost",
        where(lambda *x: _nan(x[number]) & ~_nan(x[1 - number]), lambda *x: x[1 - number]),
        "float",
    )


def _wide(function: Any) -> Any:
    """Make the bug of a formula in the operands' own type (f32 if that is narrow), as in C code."""

    def wrong(call: Call) -> Value:
        if any(x.dtype not in (F32, F64, F16, BF16) for x in call.operands):
            return None
        dtype = call.operands[0].dtype
        return np.asarray(function(*(x.astype(np.result_type(x, F32) if x.dtype != BF16 else F32)
                                     for x in call.operands))).astype(dtype)  # fmt: skip

    return wrong


SPECIAL = (
    _without_nan(0),
    _without_nan(1),
    _special("clamp", "clamp: NaN becomes the lower bound", where(
        lambda low, x, high: _nan(x), lambda low, x, high: low), "float"),
    *_special.each("add subtract multiply divide", "NaN becomes zero", result(
        lambda x: np.where(_nan(x), np.zeros((), x.dtype), x)), "float"),
    _special("multiply", "multiply: zero times anything is zero", where(
        lambda x, y: (x == 0) | (y == 0), 0.0), "float"),
    _special("subtract", "subtract: x - x is zero, also of infinity", where(
        lambda x, y: x == y, 0.0), "float"),
    _special("divide", "divide: x / x is one, also of zero", where(
        lambda x, y: x == y, 1.0), "float"),
    _special("divide", "divide: by zero gives zero", where(lambda x, y: y == 0, 0.0), "float"),
    *_special.each("add multiply exponential divide", "infinity becomes the largest number",
                   result(lambda x: np.nan_to_num(x, nan=np.nan, posinf=None, neginf=None)
                          if x.dtype in (F32, F64) else None), "float"),
    _special("is-finite", "is-finite: only NaN is not", lambda c: ~_nan(c.operands[0]), "float"),
    _special("is-finite", "is-finite: only infinity is not",
             lambda c: ~np.isinf(c.operands[0]), "float"),
    _special("sqrt", "sqrt: of the magnitude", operand(0, np.abs), "float"),
    *_special.each("log rsqrt", "of the magnitude", operand(0, np.abs), "float"),
    _special("rsqrt", "rsqrt: of zero is zero", where(lambda x: x == 0, 0.0), "float"),
    _special("power", "power: of negative bases is NaN", where(lambda x, y: x < 0, np.nan),
             "float"),
    _special("power", "power: to zero is NaN for NaN", where(lambda x, y: (y == 0) & _nan(x),
                                                             np.nan), "float"),
    _special("power", "power: exp(y log x) in its own type", _wide(
        lambda x, y: np.exp(y * np.log(x)))),
    _special("sign", "sign: of NaN is zero", where(_nan, 0.0), "float"),
    _special("sign", "sign: of zero is one", where(lambda x: x == 0, 1.0),
             "float signed unsigned"),
    _special("atan2", "atan2: atan(y / x)", _wide(lambda y, x: np.arctan(y / x))),
    _special("tanh", "tanh: (e^2x - 1) / (e^2x + 1)", _wide(
        lambda x: (np.exp(2 * x) - 1) / (np.exp(2 * x) + 1))),
    _special("logistic", "logistic: e^x / (1 + e^x)", _wide(
        lambda x: np.exp(x) / (1 + np.exp(x)))),
    _special("log-plus-one", "log-plus-one: log(1 + x)", _wide(lambda x: np.log(1 + x))),
    _special("exponential-minus-one", "exponential-minus-one: e^x - 1", _wide(
        lambda x: np.exp(x) - 1)),
    _special("sinh", "sinh: (e^x - e^-x) / 2", _wide(lambda x: (np.exp(x) - np.exp(-x)) / 2)),
    _special("asinh", "asinh: log(x + sqrt(x x + 1))", _wide(
        lambda x: np.log(x + np.sqrt(x * x + 1)))),
    _special("acosh", "acosh: log(x + sqrt(x x - 1))", _wide(
        lambda x: np.log(x + np.sqrt(x * x - 1)))),
    _special("atanh", "atanh: log((1 + x) / (1 - x)) / 2", _wide(
        lambda x: np.log((1 + x) / (1 - x)) / 2)),
    _special("remainder", "remainder: x - trunc(x / y) y", _wide(
        lambda x, y: x - np.trunc(x / y) * y)),
    _special("remainder", "remainder: of the divisor's sign", _wide(np.mod)),
    _special("cbrt", "cbrt: as a power, NaN for negative numbers", _wide(
        lambda x: np.power(x, x.dtype.type(1 / 3)))),
    _special("round-nearest-afz", "round-nearest-afz: floor(x + 1/2)", _wide(
        lambda x: np.floor(x + x.dtype.type(0.5)))),
    *_special.each("floor ceil round-nearest-even", "through s32", _wide(
        lambda x: np.trunc(x).clip(-(2.0**31), 2.0**31 - 1))),
    _special("sine cosine", "sine, cosine: reduced by a rounded 2 pi", _wide(
        lambda x: np.sin(x - np.round(x / np.float32(6.2831855)) * np.float32(6.2831855)))),
)  # fmt: skip


def _poor(opcode: str) -> Bug:
    return _approximate(opcode, f"{opcode}: error of 1e-4", off_by(1e-4))


APPROXIMATIONS = (
    *map(_poor, sorted(having(ELEMENTARY) | {"sqrt"})),
    *_approximate.each("rsqrt sqrt divide", "12 bits", off_by(2.0**-12)),
    *_approximate.each("add subtract multiply convert", "error of 1e-5", off_by(1e-5)),
    _approximate("divide", "divide: by a reciprocal of bf16", lambda c: multiply(
        c.operands[0], (1 / c.operands[1]).astype(BF16).astype(F32))
        if c.operands[0].dtype == F32 else None),
)  # fmt: skip

PRECISION = (
    *_precision.each(_ARITHMETIC + " exponential log tanh sqrt sine", "f64 in f32",
                     through(F32, [F64])),
    *_precision.each(_ARITHMETIC + " exponential tanh logistic rsqrt", "f32 in bf16",
                     through(BF16)),
    *_precision.each("multiply add divide", "f32 in f16", through(F16)),
    *_precision.each("add multiply", "bf16 in 4 bits", lambda c: op("reduce-precision")(
        c(), exponent_bits=8, mantissa_bits=3) if c.operands[0].dtype == BF16 else None),
)  # fmt: skip


def _nudged(right: Array) -> Array | None:
    if right.dtype not in (F32, F64):
        return None
    upwards = np.where(np.arange(right.size) % 2, np.inf, -np.inf).reshape(right.shape)
    return np.where(
        np.isfinite(right) & (right != 0), np.nextafter(right, upwards, dtype=right.dtype), right
    )


def _flushed(array: Array) -> Array | None:
    if array.dtype != F32:
        return None
    tiny = np.abs(array) < np.finfo(F32).tiny
    return np.where(tiny, array * np.float32(0), array)


# What a compiler may do; none is a bug.
ALLOWED = (
    *_legal.each("exponential tanh log logistic sine power erf", "one unit off", result(_nudged)),
    *_legal.each("multiply add divide", "a subnormal result flushed", result(_flushed)),
    *_legal.each("multiply subtract divide", "a subnormal operand flushed", operand(0, _flushed)),
    _legal("divide", "divide: one unit off", result(_nudged), "float"),
    _legal("multiply", "multiply: one unit off, as an unrounded product is", result(_nudged)),
    *_legal.each("maximum minimum add", "the other zero", result(
        lambda x: np.where(x == 0, np.negative(x), x)), "float"),
    *_legal.each("add multiply", "NaN of the other sign", result(
        lambda x: np.where(_nan(x), np.negative(x), x)), "float"),
)  # fmt: skip

BUGS = (
    *OPERANDS, *FUNCTIONS, *COMPARISONS, *SPECIAL, *APPROXIMATIONS, *PRECISION, *ALLOWED,
)  # fmt: skip
