"""Decode LiteralProtos: the arrays in a snapshot of a run (HloSnapshot).

Source of the field numbers: XLA's ``xla_data.proto``. Values lie in the order of the layout.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hlo.errors import Error
from hlo.types import ELEMENT_TYPES, ElementType
from hlo.values import Array, Value
from hlo_oracle.loading.wire_format import NotAMessage, fields, integers, messages


class _Type(NamedTuple):
    """An element type in protos: its name, and the number of the field with its values."""

    name: str
    field: int


# By number of PrimitiveType.
_TYPES = {
    1: _Type("pred", 2), 30: _Type("s1", 30), 26: _Type("s2", 26), 21: _Type("s4", 21),
    2: _Type("s8", 15), 3: _Type("s16", 17), 4: _Type("s32", 4), 5: _Type("s64", 5),
    31: _Type("u1", 31), 27: _Type("u2", 27), 22: _Type("u4", 22), 6: _Type("u8", 3),
    7: _Type("u16", 16), 8: _Type("u32", 6), 9: _Type("u64", 7), 10: _Type("f16", 11),
    16: _Type("bf16", 13), 11: _Type("f32", 8), 12: _Type("f64", 9), 15: _Type("c64", 12),
    18: _Type("c128", 18), 32: _Type("f4e2m1fn", 32), 29: _Type("f8e3m4", 29),
    23: _Type("f8e4m3b11fnuz", 23), 20: _Type("f8e4m3fn", 20), 25: _Type("f8e4m3fnuz", 25),
    28: _Type("f8e4m3", 28), 24: _Type("f8e5m2fnuz", 24), 19: _Type("f8e5m2", 19),
    33: _Type("f8e8m0fnu", 33),
}  # fmt: skip
_TUPLE = 13
_VARINTS = frozenset(("pred", "s32", "s64", "u32", "u64"))
_SHAPE, _TUPLE_LITERALS = 1, 10
_ELEMENT_TYPE, _DIMENSIONS, _LAYOUT, _MINOR_TO_MAJOR = 2, 3, 5, 1


def value(proto: bytes) -> Value:
    """Decode a LiteralProto to an array, or a tuple of them; raises Error."""
    try:
        return _value(proto)
    except (NotAMessage, ValueError) as error:
        raise Error(f"a damaged literal: {error}") from error


def _value(proto: bytes) -> Value:
    (shape,) = messages(proto, _SHAPE)
    (number,) = integers(fields(shape).get(_ELEMENT_TYPE, [0]))
    if number == _TUPLE:
        return tuple(map(_value, messages(proto, _TUPLE_LITERALS)))
    if number not in _TYPES:
        raise Error(f"a literal of the primitive type {number}, which has no arrays")
    kept = _TYPES[number]
    element_type = ELEMENT_TYPES[kept.name]
    dims = tuple(integers(fields(shape).get(_DIMENSIONS, [])))
    flat = _elements(fields(proto).get(kept.field, []), element_type, math.prod(dims))
    order = tuple(range(len(dims)))[::-1]
    for layout in messages(shape, _LAYOUT):
        order = tuple(integers(fields(layout).get(_MINOR_TO_MAJOR, []))) or order
    if sorted(order) != list(range(len(dims))):
        raise Error(f"a literal of {len(dims)} dimensions in the order {order}")
    major_to_minor = order[::-1]
    laid = flat.reshape([dims[d] for d in major_to_minor])
    # ascontiguousarray would make a scalar an array of one element.
    return np.asarray(laid.transpose(np.argsort(major_to_minor)), order="C")


def _elements(values: list[int | bytes], element_type: ElementType, count: int) -> Array:
    """Decode the elements, in memory order."""
    dtype = element_type.numpy
    if element_type.name in _VARINTS:
        numbers = np.fromiter(integers(values), np.uint64)
        # A negative s32 is written with its sign in all 64 bits; the upper half is dropped here.
        found = numbers.astype(dtype)
    else:
        data = b"".join(value for value in values if isinstance(value, bytes))
        if element_type.bits < 8:
            data = _unpacked(data, element_type)
        little = dtype.newbyteorder("<") if dtype.kind in "iufc" else dtype
        found = np.frombuffer(data, little).astype(dtype)
    # There may be more: elements of less than 8 bits fill whole bytes, as s4[3] does two.
    if found.size < count:
        raise Error(f"a literal with {found.size} of {count} elements")
    return found[:count]


def _unpacked(data: bytes, element_type: ElementType) -> bytes:
    """Unpack elements of less than 8 bits to a byte each; the lowest bits come first."""
    bits = element_type.bits
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    packed = np.frombuffer(data, np.uint8)
    parts = (packed[:, None] >> shifts) & np.uint8((1 << bits) - 1)
    if element_type.kind == "signed":
        sign = np.uint8(1 << (bits - 1))
        parts = (parts ^ sign) - sign
    return parts.astype(np.uint8).tobytes()
