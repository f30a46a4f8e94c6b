"""Find the function at an address of a library, by its symbol table (ELF, 64 bits)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hlo.values import Array

_SECTION = np.dtype(
    [
        *(("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("address", "<u8")),
        *(("offset", "<u8"), ("size", "<u8"), ("link", "<u4"), ("info", "<u4")),
        *(("alignment", "<u8"), ("entry", "<u8")),
    ]
)
_SYMBOL = np.dtype(
    [
        *(("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2")),
        *(("value", "<u8"), ("size", "<u8")),
    ]
)
_SYMBOL_TABLE, _FUNCTION = 2, 2  # sh_type and the low half of st_info
_ELF = b"\x7fELF\x02\x01"  # 64 bits, little endian

# The Itanium C++ ABI's mangling, as much of it as tells functions apart.
_BEFORE = re.compile(r"_Z[ZNLKVR]*+(?=\d)")
_LENGTH = re.compile(r"L?(\d++)")
_PARAMETER = re.compile(r"ENS[0-9A-Z]*+_(?=\d)")
_ANONYMOUS = "_GLOBAL__N_1"


@dataclass(frozen=True, slots=True)
class Symbols:
    """Hold functions, sorted by start address."""

    addresses: Array
    ends: Array
    names: Array  # where in ``strings``
    strings: Array

    def at(self, address: int) -> str | None:
        """Return the function at an address, without parameters and template arguments; None if
        there is none."""
        n = int(np.searchsorted(self.addresses, address, side="right")) - 1
        if n < 0 or address >= self.ends[n]:
            return None
        begin = int(self.names[n])
        return readable(bytes(self.strings[begin : begin + 4096]).partition(b"\0")[0].decode())


@cache
def symbols(path: Path) -> Symbols | None:
    """Read the symbol table of a file that has one."""
    try:
        file = np.memmap(path, np.uint8, mode="r")
    except (OSError, ValueError):
        return None
    if bytes(file[: len(_ELF)]) != _ELF:
        return None
    # e_shoff and e_shnum of the header: where the section headers are, and how many.
    start = int(file[40:48].view("<u8")[0])
    count = int(file[60:62].view("<u2")[0])
    sections = file[start : start + count * _SECTION.itemsize].view(_SECTION)
    tables = sections[sections["type"] == _SYMBOL_TABLE]
    if not len(tables):
        return None
    all_ = _content(file, tables[0]).view(_SYMBOL)
    functions = all_[(all_["info"] & 15 == _FUNCTION) & (all_["size"] > 0)]
    # Symbol tables are in no order, and :meth:`Symbols.at` searches by bisection.
    functions = functions[np.argsort(functions["value"], kind="stable")]
    ends = functions["value"] + functions["size"]
    strings = _content(file, sections[int(tables[0]["link"])])
    return Symbols(np.array(functions["value"]), ends, np.array(functions["name"]), strings)


def _content(file: Array, section: Any) -> Array:
    begin = int(section["offset"])
    return file[begin : begin + int(section["size"])]


def readable(name: str) -> str:
    """Demangle the namespaces and the name of a C++ function, and the class of its first parameter
    if that shares its namespaces; return other names unchanged.
    ``_ZN3xla3cpu12_GLOBAL__N_15visitENS_14HloInstructionE`` is
    ``xla::cpu::visit(HloInstruction)``."""
    before = _BEFORE.match(name)
    if before is None:
        return name
    words, rest = _identifiers(name[before.end() :])
    parameter = _PARAMETER.match(rest)
    given = _identifiers(rest[parameter.end() :])[0] if parameter is not None else []
    whole = "::".join(word for word in words if word != _ANONYMOUS)
    return f"{whole}({given[0]})" if given else whole


def _identifiers(text: str) -> tuple[list[str], str]:
    """Split off the length-prefixed identifiers at the beginning of a mangled name."""
    words: list[str] = []
    while (match := _LENGTH.match(text)) is not None:
        begin, end = match.end(), match.end() + int(match[1])
        words.append(text[begin:end])
        text = text[end:]
    return words, text
