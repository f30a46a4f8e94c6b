"""Read and write messages of Protocol Buffers without their schema: numbered fields with values.

Source: https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_VARINT, _I64, _LEN, _I32 = 0, 1, 2, 5  # wire types

Fields = dict[int, list[int | bytes]]


class NotAMessage(ValueError):
    """Raised for bytes that are not a Protocol Buffers message."""


def fields(data: bytes) -> Fields:
    """Decode a message: the values of each field by number, in order; integers, or bytes of
    length-delimited and fixed-width values.

    Raises NotAMessage.
    """
    found: Fields = {}
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        number, wire_type = key >> 3, key & 7
        if not number:
            raise NotAMessage("a field has the number 0")
        value: int | bytes
        if wire_type == _VARINT:
            value, place = _varint(data, place)
        else:
            if wire_type == _LEN:
                length, place = _varint(data, place)
            elif wire_type in (_I64, _I32):
                length = 8 if wire_type == _I64 else 4
            else:
                raise NotAMessage(f"wire type {wire_type}")
            if length > len(data) - place:
                raise NotAMessage("it ends within a field")
            value, place = data[place : place + length], place + length
        found.setdefault(number, []).append(value)
    return found


def messages(data: bytes, number: int) -> list[bytes]:
    """Return the values of a field that are bytes; integers are left out."""
    return [value for value in fields(data).get(number, ()) if isinstance(value, bytes)]


def integers(values: list[int | bytes]) -> Iterator[int]:
    """Yield the integers of a repeated field, packed or not."""
    for value in values:
        if isinstance(value, int):
            yield value
            continue
        place = 0
        while place < len(value):
            one, place = _varint(value, place)
            yield one


def is_message(data: bytes) -> bool:
    """Test for bytes that decode as a message."""
    try:
        fields(data)
    except NotAMessage:
        return False
    return True


def message(given: Iterable[tuple[int, int | bytes]]) -> bytes:
    """Encode fields in order; values are non-negative integers or bytes."""
    return b"".join(
        varint(number << 3 | _VARINT) + varint(value)
        if isinstance(value, int)
        else varint(number << 3 | _LEN) + varint(len(value)) + value
        for number, value in given
    )


def varint(value: int) -> bytes:
    """Encode a non-negative integer as a varint: 7 bits per byte, lowest first."""
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """Decode the varint at a position; return it and the position after it."""
    result = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            raise NotAMessage("it ends within a number")
        byte = data[place]
        place += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            # Ten groups of 7 bits hold 70: parsers of Protocol Buffers drop those beyond 64.
            return result & (1 << 64) - 1, place
    raise NotAMessage("a number of more than ten bytes")
