"""Constants as text: numbers are rounded once from their decimals to their type.

Source of the grammar: XLA's ``ParseDenseLiteral``; of the printed precision: ``literal.cc``.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from hlo.literal import Literal
from hlo.scanning import Unbalanced, closing, parts
from hlo.types import F32, F64, ArrayShape, ElementType, Shape, TupleShape

_COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*+\*/")
_BRACES = re.compile(r"[{}]")
_NUMBER = r"-?(?:nan\(0x[0-9a-fA-F]{1,16}\)|nan|inf|\d++(?:\.\d*+)?(?:[eE][+\-]?\d++)?)"
_SCALAR = re.compile(rf"true|false|\({_NUMBER}\s*+,\s*+{_NUMBER}\)|{_NUMBER}")
_PAIR = re.compile(rf"\(({_NUMBER})\s*+,\s*+({_NUMBER})\)")
_SEPARATORS = re.compile(r"[\s,{}]*+")
_ELIDED = re.compile(r"\s*+\{\s*+\.\.\.\s*+\}\s*+")
_DIGITS = 800  # more digits than any f64 midpoint needs, and than a hostile text may spend on one


class LiteralError(ValueError):
    """What is wrong with the text of a constant; ``position`` is where in it."""

    def __init__(self, message: str, position: int = 0) -> None:
        super().__init__(message)
        self.position = position


def read_literal(shape: Shape, text: str) -> Literal:
    """The constant of a shape. ``{...}`` gives one whose value is None."""
    if isinstance(shape, TupleShape):
        return _read_tuple(shape, text)
    if not shape.element_type.is_array:
        raise LiteralError(f"a constant cannot be of type {shape.element_type}")
    if _ELIDED.fullmatch(text):
        if not shape.rank:
            raise LiteralError("{...} does not stand for a scalar")
        return Literal(shape, None)
    text = _COMMENT.sub(lambda match: " " * len(match[0]), text) if "/*" in text else text
    _check_braces(shape, text)
    tokens = _tokens(text)
    if len(tokens) != shape.elements:
        raise LiteralError(f"expected {shape.elements} elements for {shape}, found {len(tokens)}")
    value = _values(shape.element_type, tokens).reshape(shape.dims)
    value.flags.writeable = False
    return Literal(shape, value)


def _read_tuple(shape: TupleShape, text: str) -> Literal:
    start = len(text) - len(text.lstrip())
    if not text.startswith("(", start):
        raise LiteralError("expected ( of a tuple constant", start)
    try:
        end = closing(text, start)
    except Unbalanced as error:
        raise LiteralError(str(error), error.position) from None
    fields = parts(text, start + 1, end)
    if len(fields) != len(shape.elements):
        raise LiteralError(f"expected {len(shape.elements)} elements, found {len(fields)}", start)
    values = []
    for (first, last), element in zip(fields, shape.elements, strict=True):
        try:
            values.append(read_literal(element, text[first:last]))
        except LiteralError as error:
            raise LiteralError(str(error), first + error.position) from None
    return Literal(shape, tuple(values))


def _check_braces(shape: ArrayShape, text: str) -> None:
    """As many braces of each depth as the dimensions say."""
    counts = [0] * (shape.rank + 1)
    depth = 0
    for match in _BRACES.finditer(text):
        if match[0] == "{":
            if depth >= shape.rank:
                raise LiteralError(f"braces nested deeper than rank {shape.rank}", match.start())
            counts[depth] += 1
            depth += 1
        else:
            depth -= 1
            if depth < 0:
                raise LiteralError("unexpected '}'", match.start())
    if depth:
        raise LiteralError("nothing closes a '{'", len(text))
    wanted = 1
    for level, dim in enumerate(shape.dims):
        if counts[level] != wanted:
            raise LiteralError(
                f"expected {wanted} {{…}} at depth {level} for {shape}, found {counts[level]}"
            )
        wanted *= dim
        if wanted > len(text):
            return  # the count of elements will tell


def _tokens(text: str) -> list[str]:
    position, tokens = _skip(text, 0), []
    while position < len(text):
        match = _SCALAR.match(text, position)
        if match is None:
            raise LiteralError("expected a number, true, false or a complex (re, im)", position)
        tokens.append(match[0])
        position = _skip(text, match.end())
    return tokens


def _skip(text: str, position: int) -> int:
    match = _SEPARATORS.match(text, position)
    assert match is not None
    return match.end()


def _values(element_type: ElementType, tokens: list[str]) -> np.ndarray[Any, Any]:
    if element_type.kind == "pred":
        return np.array([_truth(token) for token in tokens], np.bool_)
    if element_type.is_complex:
        part = F32 if element_type.bits == 64 else F64
        pairs = [_pair(token) for token in tokens]
        real = _floats(part, [pair[0] for pair in pairs])
        imag = _floats(part, [pair[1] for pair in pairs])
        result = np.empty(len(tokens), element_type.numpy)
        result.real, result.imag = real, imag
        return result
    if element_type.is_float:
        return _floats(element_type, tokens)
    return np.array([_integer(element_type, t) for t in tokens], object).astype(element_type.numpy)


def _truth(token: str) -> bool:
    if token in ("true", "false"):
        return token == "true"
    if not token.lstrip("-").isdigit():
        raise LiteralError(f"expected true, false or an integer, not {token}")
    return bool(token.strip("-0"))


def _integer(element_type: ElementType, token: str) -> int:
    if not token.lstrip("-").isdigit():
        raise LiteralError(f"expected an integer, not {token}")
    signed = element_type.kind == "signed"
    low = -(2 ** (element_type.bits - 1)) if signed else 0
    high = 2 ** (element_type.bits - signed) - 1
    value = int(token) if len(token) < 30 else high + 1
    if not low <= value <= high:
        raise LiteralError(
            f"value {token[:40]} is out of range for {element_type}, namely [{low}, {high}]"
        )
    return value


def _pair(token: str) -> tuple[str, str]:
    match = _PAIR.fullmatch(token)
    if match is not None:
        return match[1], match[2]
    if token in ("true", "false") or token.startswith("("):
        raise LiteralError(f"expected a complex (re, im), not {token}")
    return token, "0"


def _floats(element_type: ElementType, tokens: list[str]) -> np.ndarray[Any, Any]:
    if element_type in (F32, F64):
        try:
            wide = np.array(tokens, np.float64) if tokens else np.empty(0)
        except ValueError:  # payloads and truth values
            return _each(element_type, tokens)
        if element_type is F64 and not np.isnan(wide).any() and not np.isinf(wide).any():
            return wide
        bits = wide.view(np.uint64) & np.uint64(0x1FFFFFFF)
        plain = np.isfinite(wide) & (bits != 0x10000000) & (np.abs(wide) > 1e-37)
        plain |= wide == 0
        if element_type is F32 and plain.all() and (np.abs(wide) < 3.4e38).all():
            return wide.astype(np.float32)
    return _each(element_type, tokens)


def _each(element_type: ElementType, tokens: list[str]) -> np.ndarray[Any, Any]:
    result = np.empty(len(tokens), element_type.numpy)
    for place, token in enumerate(tokens):
        result[place] = _float(element_type, token)
    return result


def _float(element_type: ElementType, token: str) -> Any:
    """One number, rounded once."""
    if token in ("true", "false") or token.startswith("("):
        raise LiteralError(f"expected a number, not {token}")
    if "nan" in token:
        return _nan(element_type, token)
    if "inf" in token:
        return element_type.numpy.type(float(token))
    if len(token) > _DIGITS or abs(_exponent(token)) > 400:
        exact = Fraction(float(token)) if math.isfinite(float(token)) else None
    else:
        exact = Fraction(token)
    value = None if exact is None else _nearest(element_type, abs(exact))
    if value is None:
        largest = float(ml_dtypes.finfo(element_type.numpy).max)  # type: ignore[no-untyped-call]
        raise LiteralError(
            f"value {token[:40]} is out of range for {element_type},"
            f" namely [{-largest:g}, {largest:g}]"
        )
    return -value if token.startswith("-") else value


def _exponent(token: str) -> int:
    _, _, digits = token.lower().partition("e")
    return int(digits) if digits and len(digits) < 7 else (10**6 if digits else 0)


def _nearest(element_type: ElementType, exact: Fraction) -> Any:
    """The nearest finite value of the type, ties to even; None beyond the largest."""
    if element_type is F64:
        value = exact.numerator / exact.denominator if exact < Fraction(2) ** 1024 else math.inf
        return None if math.isinf(value) else np.float64(value)
    if element_type is F32:
        return _nearest_f32(exact)
    magnitudes = _magnitudes(element_type)
    place = int(np.searchsorted(magnitudes, float(exact)))
    below = max(place - 1, 0)
    around = range(max(below - 1, 0), min(place + 2, len(magnitudes)))
    best = min(around, key=lambda n: (abs(Fraction(float(magnitudes[n])) - exact), n % 2))
    last = len(magnitudes) - 1
    if best == last and last > 0:
        step = float(magnitudes[last]) - float(magnitudes[last - 1])
        if exact - Fraction(float(magnitudes[last])) >= Fraction(step) / 2:
            return None
    return element_type.numpy.type(float(magnitudes[best]))


def _nearest_f32(exact: Fraction) -> Any:
    value = np.float32(float(exact)) if exact < Fraction(2) ** 128 else np.float32(np.inf)
    around = [np.nextafter(value, np.float32(0)), value, np.nextafter(value, np.float32(np.inf))]
    if exact >= Fraction(float(np.finfo(np.float32).max)) + Fraction(2) ** 103:
        return None
    finite = [v for v in around if np.isfinite(v)]
    return min(
        finite,
        key=lambda v: (abs(Fraction(float(v)) - exact), int(v.view(np.uint32)) & 1),
    )


@lru_cache(maxsize=32)
def _magnitudes(element_type: ElementType) -> np.ndarray[Any, Any]:
    """All finite values that are not negative of a type of at most 16 bits, ascending."""
    width = max(8, element_type.bits)
    codes = np.arange(2**element_type.bits, dtype=f"u{width // 8}")
    with np.errstate(invalid="ignore"):  # signalling NaNs
        values = codes.view(element_type.numpy).astype(np.float64)
    return np.unique(np.abs(values[np.isfinite(values)]))


def _nan(element_type: ElementType, token: str) -> Any:
    """A NaN with its sign, and its payload in the low mantissa bits."""
    width = max(8, element_type.bits)
    plain = np.array([float("nan")]).astype(element_type.numpy)
    code = int(plain.view(f"u{width // 8}")[0])
    mantissa = {"f64": 52, "f32": 23, "f16": 10, "bf16": 7}.get(element_type.name)
    if "(" in token and mantissa is not None:
        payload = int(token[token.index("(") + 1 : -1], 16)
        if not 0 < payload < 2**mantissa:
            raise LiteralError(f"the payload of {token} does not fit {element_type}")
        code = (code & ~(2**mantissa - 1)) | payload
    sign = 1 << (element_type.bits - 1)
    code = code & ~sign if mantissa is not None else code
    if token.startswith("-") and mantissa is not None:
        code |= sign
    return np.array([code], f"u{width // 8}").view(element_type.numpy)[0]


# Printing

_SIGNIFICANT = {"f64": (15, 17), "f32": (6, 9)}
_FEW = 10  # XLA prints longer constants as {...} unless asked


def show_literal(literal: Literal, large: bool = True) -> str:
    """The constant as text that reads back to the same bits; ``{...}`` for more than ten elements
    unless ``large``."""
    if isinstance(literal.value, tuple):
        return "(" + ", ".join(show_literal(part, large) for part in literal.value) + ")"
    shape = literal.shape
    assert isinstance(shape, ArrayShape)
    if literal.value is None or (shape.elements > _FEW and not large):
        return "{...}"
    return _show(literal.value, shape)


def _show(value: np.ndarray[Any, Any], shape: ArrayShape) -> str:
    flat = [show_number(number, shape) for number in value.reshape(-1)]
    if not shape.rank:
        return flat[0]
    if 0 in shape.dims:
        return "{" * shape.rank + "}" * shape.rank if shape.dims[0] else "{}"
    for dim in reversed(shape.dims):
        flat = ["{" + ", ".join(flat[n : n + dim]) + "}" for n in range(0, len(flat), dim)]
    return flat[0]


def show_number(number: Any, shape: ArrayShape) -> str:
    """One element as text."""
    element_type = shape.element_type
    if element_type.kind == "pred":
        return ("1" if number else "0") if shape.rank else ("true" if number else "false")
    if element_type.is_complex:
        part = F32 if element_type.bits == 64 else F64
        return f"({_show_float(number.real, part)}, {_show_float(number.imag, part)})"
    if element_type.is_float:
        return _show_float(number, element_type)
    return str(int(number))


def _show_float(number: Any, element_type: ElementType) -> str:
    value = float(number)
    if math.isnan(value):
        return _show_nan(number, element_type)
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    short, long = _SIGNIFICANT.get(element_type.name, (6, 9))
    text = f"{value:.{short}g}"
    with np.errstate(over="ignore"):  # the short text may round beyond the largest value
        same = float(element_type.numpy.type(float(text))) == value
    return text if same else f"{value:.{long}g}"


def _show_nan(number: Any, element_type: ElementType) -> str:
    mantissa = {"f64": 52, "f32": 23, "f16": 10, "bf16": 7}.get(element_type.name)
    if mantissa is None:
        return "nan"
    code = int(np.asarray(number).view(f"u{element_type.bits // 8}"))
    sign = "-" if code >> (element_type.bits - 1) else ""
    payload = code & (2**mantissa - 1)
    quiet = 1 << (mantissa - 1)
    return f"{sign}nan" if payload == quiet else f"{sign}nan(0x{payload:x})"
