"""Compare two results bit by bit: any NaN equals any NaN, −0 differs from +0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlo.types import element_type_of
from hlo.values import Value, placed


@dataclass(frozen=True, slots=True)
class Difference:
    """Hold where two arrays differ: how many elements do, the index of the first, and both elements
    there in hex. If types or shapes differ, ``first`` is None, and ``bits`` are these."""

    output: str
    elements: int
    different: int
    first: tuple[int, ...] | None
    bits: tuple[str, str]

    def __str__(self) -> str:
        if self.first is None:
            return f"{self.output or 'result'}: {self.bits[0]} against {self.bits[1]}"
        place = f"[{','.join(map(str, self.first))}]"
        return (
            f"{self.output or 'result'}: {self.different} of {self.elements} differ,"
            f" first at {place}: {self.bits[0]} against {self.bits[1]}"
        )


def differences(expected: Value, actual: Value) -> list[Difference]:
    """Return a difference for each output that is not equal bit by bit."""
    one, other = list(placed(expected)), list(placed(actual))
    if len(one) != len(other):
        return [Difference("result", 0, 0, None, (f"{len(one)} arrays", f"{len(other)} arrays"))]
    pairs = zip(one, other, strict=True)
    found = (_difference(name, np.asarray(a), np.asarray(b)) for (name, a), (_, b) in pairs)
    return [difference for difference in found if difference is not None]


def _difference(name: str, expected: np.ndarray, actual: np.ndarray) -> Difference | None:
    if (expected.dtype, expected.shape) != (actual.dtype, actual.shape):
        kinds = tuple(f"{a.dtype}{list(a.shape)}" for a in (expected, actual))
        return Difference(name, expected.size, expected.size, None, (kinds[0], kinds[1]))
    unequal = ~_same(expected, actual)
    count = int(unequal.sum())
    if not count:
        return None
    flat = int(np.argmax(unequal.reshape(-1)))
    first = tuple(int(i) for i in np.unravel_index(flat, expected.shape))
    return Difference(name, expected.size, count, first, (_hex(expected, flat), _hex(actual, flat)))


def _same(expected: np.ndarray, actual: np.ndarray) -> np.ndarray:
    if expected.dtype.kind == "c":
        parts = _same(expected.real, actual.real), _same(expected.imag, actual.imag)
        return np.asarray(parts[0] & parts[1])
    element_type = element_type_of(expected.dtype)
    if element_type is None or not element_type.is_float:
        return np.asarray(expected == actual)
    same = _bits(expected) == _bits(actual)
    with np.errstate(invalid="ignore"):  # ml_dtypes warns of signalling NaNs
        return np.asarray(same | (np.isnan(expected) & np.isnan(actual)))


def _bits(array: np.ndarray) -> np.ndarray:
    # view() needs contiguous memory, which .real and .imag are not; ascontiguousarray makes an
    # array of rank 1 of a scalar, hence the reshape.
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape)


def _hex(array: np.ndarray, flat: int) -> str:
    """Format an element's bytes, most significant first; a complex number as two numbers."""
    if array.dtype.kind == "c":
        return f"({_hex(array.real, flat)}, {_hex(array.imag, flat)})"
    element = np.ascontiguousarray(array).reshape(-1)[flat : flat + 1]
    return f"0x{element.tobytes()[::-1].hex()}"
