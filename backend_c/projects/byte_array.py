"""Render bytes as C source."""

from __future__ import annotations


def aligned_union(size: int) -> str:
    """Render the members of a union whose ``.bytes`` are aligned for every element type: members
    of a union are aligned for the strictest of them, and C99 has no alignas."""
    members = (f"unsigned char bytes[{max(size, 1)}];", "uint64_t words;")
    return "{\n" + "".join(f"    {member}\n" for member in members) + "}"


def initializer(block: bytes) -> str:
    """Render the initializer of such a union."""
    rows = [
        "    " + ", ".join(map(str, block[start : start + 24])) + ","
        for start in range(0, len(block), 24)
    ]
    return "{{\n" + ("\n".join(rows) or "    0,") + "\n}}"


def aligned_bytes(name: str, block: bytes) -> str:
    """Render a constant ``name`` whose ``.bytes`` are aligned for every element type."""
    return f"static const union {aligned_union(len(block))} {name} = {initializer(block)};\n"
