"""Render bytes as C source."""

from __future__ import annotations


def aligned_bytes(name: str, block: bytes) -> str:
    """Render a constant ``name`` whose ``.bytes`` are aligned for every element type (a union)."""
    rows = [
        "    " + ", ".join(map(str, block[start : start + 24])) + ","
        for start in range(0, len(block), 24)
    ]
    body = "\n".join(rows) if rows else "    0,"
    # Members of a union are aligned for the strictest of them: C99 has no alignas.
    return (
        "static const union {\n"
        f"    unsigned char bytes[{max(len(block), 1)}];\n"
        "    uint64_t words;\n"
        "    double numbers;\n"
        f"}} {name} = {{{{\n{body}\n}}}};\n"
    )
