"""Declare the C ABI of PJRT as ctypes structures, from a table of its names: ``pjrt_0_114.txt``.

The table is this project's own, as pypjrt keeps its table in private modules; the layout of a
version never changes. Tests compare every size and offset with pypjrt's.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

MAJOR, MINOR = 0, 114
# The kinds of extensions in the table, by PJRT_Extension_Type.
EXTENSIONS = {"layouts": 4, "abi_version": 20}

_TABLE = Path(__file__).with_name("pjrt_0_114.txt")
_TYPES: dict[str, Any] = {
    "": ctypes.c_void_p,
    "size": ctypes.c_size_t,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "f32": ctypes.c_float,
    "bool": ctypes.c_bool,
}
_FIRST = (("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p))


class _Fields:
    """A base of structures with checked assignment: AttributeError for an unknown field name."""

    __slots__ = ()

    def give(self, **values: object) -> None:
        for name, value in values.items():
            setattr(self, name, value)

    def clear(self, first: str) -> None:
        """Zero a field and all that follow it, as clients leave them undefined."""
        offset, this = getattr(type(self), first).offset, cast(ctypes.Structure, self)
        ctypes.memset(ctypes.addressof(this) + offset, 0, ctypes.sizeof(this) - offset)

    def give_each(self, names: tuple[str, ...], values: tuple[object, ...]) -> None:
        for name, value in zip(names, values, strict=True):
            setattr(self, name, value)


@dataclass(frozen=True, slots=True)
class Declarations:
    """ctypes structures by name, those of a function's arguments under the function's name;
    ``sizes`` are the bytes up to the end of the last field, which clients store in ``struct_size``.
    ``functions`` are the names in the order of PJRT_Api, ``extensions`` those of each extension by
    its PJRT_Extension_Type."""

    structures: dict[str, Any]
    sizes: dict[str, int]
    functions: tuple[str, ...]
    extensions: dict[int, tuple[str, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all functions, those of extensions last."""
        return self.functions + sum(self.extensions.values(), ())


@cache
def declarations() -> Declarations:
    """Parse the table and declare its structures, once."""
    kinds: dict[str, list[str]] = {kind: [] for kind in ("function", *EXTENSIONS)}
    made: dict[str, Any] = {}
    for line in _TABLE.read_text("ascii").splitlines():
        if not line or line.startswith("#"):
            continue
        kind, name, *described = line.split()
        fields = [_field(field, made) for field in described]
        if kind in kinds:
            kinds[kind].append(name)
            # Functions of the extension AbiVersion take no ``extension_start``.
            fields = [*_FIRST[: 1 if kind == "abi_version" else 2], *fields]
        kinship = ctypes.Union if kind == "union" else ctypes.Structure
        made[name] = type(name, (_Fields, kinship), {"__slots__": (), "_fields_": fields})
    sizes = {name: _size(kind) for name, kind in made.items()}
    extensions = {number: tuple(kinds[kind]) for kind, number in EXTENSIONS.items()}
    return Declarations(made, sizes, tuple(kinds["function"]), extensions)


def structure(name: str) -> Any:
    """Return a structure by its name."""
    return declarations().structures[name]


def _field(described: str, made: dict[str, Any]) -> tuple[str, Any]:
    """Parse ``name:type`` to a field; the type may be a structure declared before."""
    name, _, of = described.partition(":")
    return name, _TYPES[of] if of in _TYPES else made[of]


def _size(kind: Any) -> int:
    """Compute the offset of the end of a structure's last field."""
    last = getattr(kind, kind._fields_[-1][0])
    return int(last.offset + last.size)
