"""Read and write a client's memory: strings, lists, arrays, named values."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hlo.errors import ArgumentError
from hlo.values import Array
from hlo_oracle.frontends.pjrt.declarations import structure

NamedValue = str | int | bool | float | tuple[int, ...]
_STRING, _INT64, _INT64_LIST, _FLOAT, _BOOL = range(5)  # PJRT_NamedValue_Type


class Kept:
    """C arrays that stay alive as long as the object that they describe, each built once."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: dict[object, tuple[Any, int, object]] = {}

    def text(self, text: str | bytes) -> tuple[int, int]:
        """Return the address and size of a string in C."""
        data = text.encode() if isinstance(text, str) else text
        return self._kept((str, data), lambda: (ctypes.create_string_buffer(data), len(data), None))

    def numbers(self, values: Sequence[int], kind: Any = ctypes.c_int64) -> tuple[int, int]:
        """Return the address and length of an array of integers, of pointers with
        ``kind=c_void_p``."""
        key = (kind, tuple(values))
        return self._kept(key, lambda: ((kind * max(1, len(values)))(*values), len(values), None))

    def texts(self, texts: Sequence[str]) -> tuple[int, int, int]:
        """Return the addresses of an array of strings and of an array of their sizes, and their
        number."""
        places = [self.text(text) for text in texts]
        addresses, count = self.numbers([place for place, _ in places], ctypes.c_void_p)
        sizes, _ = self.numbers([size for _, size in places], ctypes.c_size_t)
        return addresses, sizes, count

    def named(self, values: Mapping[str, NamedValue]) -> tuple[int, int]:
        """Return the address and length of an array of PJRT_NamedValues."""
        return self._kept((dict, tuple(values.items())), lambda: self._named(values))

    def _named(self, values: Mapping[str, NamedValue]) -> tuple[Any, int, object]:
        made = (structure("NamedValue") * max(1, len(values)))()
        for entry, (name, value) in zip(made, values.items()):
            entry.give_each(("name", "name_size"), self.text(name))
            kind, field, written, size = self._written(value)
            entry.give(struct_size=ctypes.sizeof(entry), type=kind, value_size=size)
            entry.value.give(**{field: written})
        return made, len(values), None

    def _written(self, value: NamedValue) -> tuple[int, str, object, int]:
        """Return a value's type code, the union's field, the field's content, and its size."""
        if isinstance(value, str):
            address, size = self.text(value)
            return _STRING, "string_value", address, size
        if isinstance(value, tuple):
            address, size = self.numbers(value)
            return _INT64_LIST, "int64_array_value", address, size
        if isinstance(value, bool):
            return _BOOL, "bool_value", value, 1
        if isinstance(value, int):
            return _INT64, "int64_value", value, 1
        return _FLOAT, "float_value", value, 1

    def _kept(self, key: object, make: Any) -> tuple[int, int]:
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = make()
        return ctypes.addressof(found[0]), found[1]


def text_at(address: int | None, size: int) -> str:
    """Read a string."""
    return bytes_at(address, size).decode("utf-8", "replace")


def bytes_at(address: int | None, size: int) -> bytes:
    """Read bytes."""
    return ctypes.string_at(address, size) if address and size else b""


def numbers_at(address: int | None, count: int, kind: Any = ctypes.c_int64) -> list[int]:
    """Read integers, pointers with ``kind=c_void_p`` (None for a null pointer)."""
    return list((kind * count).from_address(address)) if address and count else []


def write_numbers(address: int | None, values: Iterable[int], kind: Any = ctypes.c_void_p) -> None:
    """Write pointers, or other integers; the address may be null if there are none."""
    written = list(values)
    if written:
        (kind * len(written)).from_address(address)[:] = written


_READ: dict[int, Callable[[Any, int], NamedValue]] = {
    _STRING: lambda value, size: text_at(value.string_value, size),
    _INT64: lambda value, _: int(value.int64_value),
    _INT64_LIST: lambda value, size: tuple(numbers_at(value.int64_array_value, size)),
    _FLOAT: lambda value, _: float(value.float_value),
    _BOOL: lambda value, _: bool(value.bool_value),
}


def named_at(address: int | None, count: int) -> dict[str, NamedValue]:
    """Read PJRT_NamedValues."""
    found: dict[str, NamedValue] = {}
    for place in range(count if address else 0):
        kind = structure("NamedValue")
        entry = kind.from_address((address or 0) + place * ctypes.sizeof(kind))
        value, size = entry.value, entry.value_size
        if entry.type not in _READ:
            raise ArgumentError(f"a named value of type {entry.type}")
        found[text_at(entry.name, entry.name_size)] = _READ[entry.type](value, size)
    return found


class _Memory:
    """Memory in NumPy's array interface."""

    def __init__(self, interface: Mapping[str, object]) -> None:
        self.__array_interface__ = interface


def array_at(
    address: int | None,
    dims: Sequence[int],
    dtype: np.dtype[Any],
    strides: Sequence[int] | None = None,
) -> Array:
    """View the memory at an address as an array, row-major or with the given strides in bytes."""
    if not address or 0 in dims:
        return np.empty(tuple(dims), dtype)
    # NumPy's names for types leave out those of ml_dtypes: their memory is that of integers.
    # No integer has the 16 bytes of a c128: that is viewed as itself.
    kind = f"<u{dtype.itemsize}" if dtype.itemsize <= 8 else f"<c{dtype.itemsize}"
    interface = {
        "data": (address, False),
        "shape": tuple(dims),
        "typestr": kind,
        "strides": None if strides is None else tuple(strides),
        "version": 3,
    }
    return np.asarray(_Memory(interface)).view(dtype)


def address_of(array: Array) -> int:
    """Return the address of an array's data."""
    address: int = array.__array_interface__["data"][0]
    return address
