"""Generate arguments from seeds, and hash results to 64 bits, in the same way as driver.c."""

from __future__ import annotations

import zlib

import numpy as np

from backend_c.render.translation_units import storage_type, stored_bytes
from hlo.types import ArrayShape, ElementType, element_type_of
from hlo.values import Array

_WORD = 1 << 64
_PRIME, _BASIS = 1099511628211, 14695981039346656037  # FNV-1a
# The largest bit pattern, but for the sign, that is no NaN, of types with several NaNs: any is as
# good as another.
_LARGEST = {"f8e5m2": 0x7C, "f8e4m3fn": 0x7E, "f16": 0x7C00, "bf16": 0x7F80}
_LARGEST |= {"f32": 0x7F800000, "f64": 0x7FF0000000000000}
_NEAR_ONE = {1: (0x87, 0x38), 2: (0x83FF, 0x3C00), 4: (0x807FFFFF, 0x3F800000)}
_NEAR_ONE |= {8: (0x800FFFFFFFFFFFFF, 0x3FF0000000000000)}


def seed(question: str, number: int) -> int:
    """Return the seed of a parameter, which depends on its own question only."""
    return zlib.crc32(f"{question} {number}".encode())


def width(element_type: ElementType) -> int:
    """Return the bytes of an element in memory."""
    return storage_type(element_type).itemsize


def largest(element_type: ElementType) -> int:
    """Return the largest bit pattern, without the sign, that is no NaN; 0 for types not in the
    table."""
    return _LARGEST.get(element_type.name, 0)


def mask(element_type: ElementType) -> int:
    """Return the mask of an element's significant bits in memory."""
    bits = 1 if element_type.kind == "pred" else element_type.bits
    return (1 << bits) - 1


def filled(shape: ArrayShape, start: int) -> Array:
    """Fill an array with pseudorandom bit patterns, among them extremes and numbers near 0 and 1.

    The generator is SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), whose top 4 bits choose.
    """
    bits = 8 * width(shape.element_type)
    ones = np.uint64((1 << bits) - 1)
    z = np.arange(1, shape.elements + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z += np.uint64(start)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    small, top = z & np.uint64(0x7F), np.uint64(1 << (bits - 1))
    kept, one = map(np.uint64, _NEAR_ONE[bits // 8])
    ends = [np.full_like(z, end) for end in (0, ones, top, ones ^ top)]
    near = [small, ones ^ small, z & kept | one, z & kept | one]
    kind = z >> np.uint64(60)
    words = np.select([kind == k for k in range(8)], [*ends, *near], z) & ones
    words &= np.uint64(mask(shape.element_type))
    return words.astype(f"u{bits // 8}").view(shape.element_type.numpy).reshape(shape.dims)


def digest(array: Array) -> int:
    """Hash the bytes of an array as C stores it by FNV-1a, with all NaNs alike."""
    element_type = element_type_of(array.dtype)
    assert element_type is not None, array.dtype
    word = np.dtype(f"u{width(element_type)}")
    words = np.frombuffer(stored_bytes(array), word).copy()
    if largest(element_type):
        sign = word.type(1 << (8 * word.itemsize - 1))
        words[(words & ~sign) > largest(element_type)] = ~word.type(0)
    found = _BASIS
    for byte in words.tobytes():
        found = (found ^ byte) * _PRIME % _WORD
    return found
