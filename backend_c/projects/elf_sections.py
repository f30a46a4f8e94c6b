"""Read the sizes of an object file's sections (ELF, as compilers for microcontrollers write).

Layout: System V Application Binary Interface, chapters 4 "Object Files" and "Sections".
"""

from __future__ import annotations

import struct

from hlo.errors import ToolchainError

_MAGIC = b"\x7fELF"
_NO_BITS = 8  # sh_type of a section that takes no bytes of the file: zeros
_WRITE, _ALLOCATED = 1, 2  # sh_flags
# By the fifth byte: where e_shoff is; sh_type, sh_flags, sh_addr, sh_offset and sh_size of a header
# of a section behind sh_name; by the sixth: the order of bytes.
_FIELDS = {1: ("I", 0x20, 0x2E, "4x5I"), 2: ("Q", 0x28, 0x3A, "4xI4Q")}
_ORDER = {1: "<", 2: ">"}


def read_only_bytes(content: bytes) -> int:
    """Return the bytes of code and constants of an object file: what flash holds of it.

    Raises ToolchainError if it is no ELF, or if it has variables: emitted C has none.
    """
    if content[:4] != _MAGIC:
        raise ToolchainError("the compiler wrote no ELF object: sizes are read of that format")
    word, place, sizes_place, fields = _FIELDS[content[4]]
    order = _ORDER[content[5]]
    (start,) = struct.unpack_from(order + word, content, place)
    size, count = struct.unpack_from(order + "2H", content, sizes_place)
    found = 0
    for number in range(count):
        kind, flags, _, _, held = struct.unpack_from(order + fields, content, start + number * size)
        if not flags & _ALLOCATED or not held:
            continue
        if flags & _WRITE or kind == _NO_BITS:
            raise ToolchainError("the compiler made variables of constants")
        found += held
    return found
