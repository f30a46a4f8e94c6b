"""Read and print numbers: decimals are rounded once, directly to their type, and read back.

A decimal becomes the nearest f64 first. Rounding that to a narrower type equals rounding the
decimal, unless the f64 is a midpoint of two values of the type: there the decimal itself decides
(no double rounding). Sources: XLA's ``CheckParsedValueIsInRange`` for what is out of range,
``literal.cc`` for the digits printed.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from hlo.types import F32, F64, ElementType
from hlo.values import Array


class NumberError(ValueError):
    """A number, at index ``place`` of a list, that the type cannot have."""

    def __init__(self, message: str, place: int) -> None:
        super().__init__(message)
        self.place = place


@dataclass(frozen=True, slots=True)
class _Format:
    """Describe a float type: ``precision`` counts the hidden bit, ``quantum`` is 1 ulp of zero."""

    precision: int
    quantum: float
    largest: float
    least: float  # of the numbers with all bits of precision
    saturates: bool  # has neither infinity nor NaN: larger numbers become the largest
    has_signed_nan: bool
    has_payload: bool
    digits: int  # so many print every value so that it reads back


@cache
def _format(element_type: ElementType) -> _Format:
    info = ml_dtypes.finfo(element_type.numpy)  # type: ignore[no-untyped-call]  # as shipped
    name = element_type.name
    precision = int(info.nmant) + 1
    # f8e4m3fn has one NaN of each sign, the ``fnuz`` types and f8e8m0fnu have a single NaN.
    ieee = element_type.bits >= 16 or name in ("f8e5m2", "f8e4m3", "f8e3m4")
    return _Format(
        precision=precision,
        quantum=float(info.smallest_subnormal),
        largest=float(info.max),
        least=float(info.smallest_normal),
        saturates=element_type.bits < 8,
        has_signed_nan=ieee or name == "f8e4m3fn",
        has_payload=ieee,
        # 10**(digits - 1) >= 2**precision, so that decimals of so many digits tell all values apart
        # (Matula, "In-and-out conversions", CACM 11(1), 1968).
        digits=int(np.ceil(1 + precision * np.log10(2))),
    )


# Reading


def read_numbers(element_type: ElementType, tokens: Sequence[str]) -> Array:
    """Read the values of tokens that are spelled as numbers of the type's kind."""
    if element_type.is_float:
        return _floats(element_type, tokens)
    if element_type.is_complex:
        part = F32 if element_type.bits == 64 else F64
        return _floats(part, tokens).view(element_type.numpy)
    if element_type.kind == "pred":
        truth = {"true": True, "false": False}
        return np.array([truth[t] if t in truth else int(t) != 0 for t in tokens], np.bool_)
    return _integers(element_type, tokens)


def _integers(element_type: ElementType, tokens: Sequence[str]) -> Array:
    signed = element_type.kind == "signed"
    low = -(2 ** (element_type.bits - 1)) if signed else 0
    high = 2 ** (element_type.bits - signed) - 1
    values = list(map(int, tokens))
    if element_type.bits == 64:  # XLA takes the 64 bits of either kind for the other
        wrapped = 2**64 if signed else -(2**64)
        values = [
            v - wrapped if not low <= v <= high and -(2**63) <= v < 2**64 else v for v in values
        ]
    if values and not (low <= min(values) and max(values) <= high):
        place = next(n for n, value in enumerate(values) if not low <= value <= high)
        raise NumberError(_out_of_range(tokens[place], element_type, f"[{low}, {high}]"), place)
    return np.array(values, np.int64 if signed else np.uint64).astype(element_type.numpy)


def _out_of_range(token: str, element_type: ElementType, interval: str) -> str:
    return f"value {token[:40]} is out of range for {element_type}, namely {interval}"


def _one_float(element_type: ElementType, token: str) -> Array | None:
    """Round a decimal by way of f64; None where that might be rounding twice, or out of range."""
    if element_type.bits < 16 or "n" in token:  # nan, inf
        return None
    value = float(token)
    form = _format(element_type)
    if value and not form.least <= abs(value) <= form.largest:
        return None
    if form.precision < 53:
        code: int = struct.unpack("<Q", struct.pack("<d", value))[0]
        half = 1 << (52 - form.precision)
        if code & (2 * half - 1) == half:  # the middle of two
            return None
    return np.array([value]).astype(element_type.numpy)


def _floats(element_type: ElementType, tokens: Sequence[str]) -> Array:
    if len(tokens) == 1 and (one := _one_float(element_type, tokens[0])) is not None:
        return one
    plain = tokens
    nans = [place for place, token in enumerate(tokens) if "nan" in token]
    if nans:
        plain = list(tokens)
        for place in nans:
            plain[place] = "1"  # anything that every type has
    wide = np.array(list(map(float, plain)), np.float64)
    value, largest = _narrowed(element_type, wide, plain)
    beyond = np.flatnonzero(~np.isfinite(wide) | (np.abs(value) > largest))
    for place in beyond.tolist():
        if "inf" not in plain[place]:
            interval = f"[{-largest:g}, {largest:g}]"
            raise NumberError(_out_of_range(plain[place], element_type, interval), place)
    with np.errstate(over="ignore"):
        result = value.astype(element_type.numpy)
    for place in nans:
        result[place] = _nan(element_type, tokens[place], place)
    return result


def _narrowed(element_type: ElementType, wide: Array, tokens: Sequence[str]) -> tuple[Array, float]:
    """Return the numbers rounded to the type's grid, as f64 (possibly beyond its range), and the
    type's largest number."""
    if element_type is F64:
        return wide, float(np.finfo(np.float64).max)
    form = _format(element_type)
    finite = np.isfinite(wide)
    if not form.precision > 1:  # f8e8m0fnu has no zero and no sign
        positive = wide > 0
        if not positive.all():
            place = int(np.argmin(positive))
            raise NumberError(f"{element_type} has no {tokens[place][:40]}", place)
    magnitude = np.where(finite, np.abs(wide), 0.0)
    _, exponent = np.frexp(magnitude)
    # The last bit of numbers of this exponent; of subnormal ones it is always the quantum.
    step = np.maximum(np.ldexp(1.0, exponent - form.precision), form.quantum)
    scaled = magnitude / step  # exact: a power of two
    rounded = np.rint(scaled)
    # Only at a midpoint can the rounding to f64 have decided how this one goes.
    for place in np.flatnonzero(scaled - np.floor(scaled) == 0.5).tolist():
        exact = Decimal(tokens[place]).copy_abs()  # abs() would round
        middle = Decimal(float(magnitude[place]))
        if exact != middle:
            rounded[place] = np.floor(scaled[place]) + (exact > middle)
    if not form.precision > 1:
        rounded = np.maximum(rounded, 1)  # nor anything between its least number and zero
    result = np.copysign(np.where(finite, rounded * step, wide), wide)
    if form.saturates:
        result = np.clip(result, -form.largest, form.largest)
    return result, form.largest


def _nan(element_type: ElementType, token: str, place: int) -> Any:
    """Return a NaN with its text's sign and payload (mantissa bits), where the type has them."""
    form = _format(element_type)
    if form.saturates:
        raise NumberError(f"{element_type} has no NaN", place)
    unsigned = np.dtype(f"u{element_type.numpy.itemsize}")
    code = int(np.array([np.nan]).astype(element_type.numpy).view(unsigned)[0])
    sign = 1 << (element_type.bits - 1)
    if form.has_signed_nan:
        code = code | sign if token.startswith("-") else code & ~sign
    if "(" in token:
        mask = 2 ** (form.precision - 1) - 1
        payload = int(token[token.index("(") + 1 : -1], 16)
        if not form.has_payload or not 0 < payload <= mask:
            raise NumberError(f"the payload of {token} does not fit {element_type}", place)
        code = code & ~mask | payload
    return np.array([code], unsigned).view(element_type.numpy)[0]


# Printing


def show_numbers(element_type: ElementType, values: Array, scalar: bool) -> list[str]:
    """Write the elements of a flat array as texts that read back to the same bits."""
    if element_type.kind == "pred":
        names = ("false", "true") if scalar else ("0", "1")
        return [names[bool(value)] for value in values.tolist()]
    if element_type.is_complex:
        part = F32 if element_type.bits == 64 else F64
        texts = _show_floats(part, values.view(part.numpy))
        pairs = zip(texts[::2], texts[1::2], strict=True)
        return [f"({real}, {imag})" for real, imag in pairs]
    if element_type.is_float:
        return _show_floats(element_type, values)
    return [str(int(value)) for value in values]


def _show_floats(element_type: ElementType, values: Array) -> list[str]:
    """Format floats with XLA's digits: f32 in 6, or 9 if 6 do not read back; f64 in 15 or 17; other
    types with as many as any of their values needs."""
    short, long = {"f32": (6, 9), "f64": (15, 17)}.get(element_type.name, (0, 0))
    with np.errstate(invalid="ignore"):  # signalling NaNs
        wide = values.astype(np.float64)
    short = short or _format(element_type).digits
    texts = [f"{value:.{short}g}" for value in wide.tolist()]
    if long:
        with np.errstate(over="ignore"):
            again = np.array(list(map(float, texts)), np.float64).astype(values.dtype)
        for place in np.flatnonzero((again != values) & ~np.isnan(wide)).tolist():
            texts[place] = f"{float(wide[place]):.{long}g}"
    for place in np.flatnonzero((wide == 0) & np.signbit(wide)).tolist():
        texts[place] = "-0.0"  # XLA reads -0 as an integer
    for place in np.flatnonzero(np.isnan(wide)).tolist():
        texts[place] = _show_nan(element_type, values[place : place + 1])
    return texts


def _show_nan(element_type: ElementType, value: Array) -> str:
    form = _format(element_type)
    code = int(value.view(f"u{element_type.numpy.itemsize}")[0])
    sign = "-" if form.has_signed_nan and code >> (element_type.bits - 1) else ""
    payload = code & (2 ** (form.precision - 1) - 1)
    quiet = 1 << (form.precision - 2) if form.precision > 1 else 0
    return f"{sign}nan" if not form.has_payload or payload == quiet else f"{sign}nan({payload:#x})"
