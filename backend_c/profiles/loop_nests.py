"""Parse the loop nests of kernels from their C, in any dialect.

Rendered kernels have one form (:mod:`backend_c.render.statements`): a loop is a head on a line of
its own, after its pragma, and a brace at the same indentation ends it. What is read are the loops
that a compiler sees, after all rewriting of the loop IR.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEAD = re.compile(r"( *)for \(\w+ (\w+) = ([^;]*); \2 < ([^;]*); ([^;]*)\) \{")
_ARRAY = re.compile(r"\b[acrs]\d+\b")
_CALL = re.compile(r"\b(hlo_\w+)\(")
# What a pragma says of iterations.
_PRAGMAS = {
    "#pragma omp parallel for simd": "threads and lanes",
    "#pragma omp parallel for": "threads",
    "#pragma omp simd": "lanes",
}
# Where each block or thread begins with a variable says which of them share its iterations.
_SHARED = re.compile(r"\b(block|thread)Idx\b")


@dataclass(frozen=True, slots=True)
class Nest:
    """Describe a loop of a kernel: its depth, its variable and extent as in C.

    ``kind`` is what shares its iterations, ``serial`` nothing. Lines ``first`` to ``last`` count
    from the kernel's first, 0. ``arrays`` and runtime functions (``calls``) are those named inside.
    """

    depth: int
    variable: str
    extent: str
    kind: str
    first: int
    last: int
    arrays: tuple[str, ...]
    calls: tuple[str, ...]


def loop_nests(text: str) -> tuple[Nest, ...]:
    """Return the loops of a kernel's C, each before those inside it."""
    lines = text.split("\n")
    open_: list[tuple[int, re.Match[str], int]] = []  # number, head, first line
    found: dict[int, Nest] = {}
    for number, line in enumerate(lines):
        head = _HEAD.fullmatch(line)
        if head is not None:
            open_.append((len(open_) + len(found), head, number))
        elif open_ and line == f"{open_[-1][1][1]}}}":
            at, begun, first = open_.pop()
            found[at] = _nest(lines, begun, first, number, len(open_))
    return tuple(found[at] for at in sorted(found))


def _nest(lines: list[str], head: re.Match[str], first: int, last: int, depth: int) -> Nest:
    """Parse a loop from its head and its lines."""
    _, variable, start, extent, _ = head.groups()
    pragma = lines[first - 1].strip().partition(" reduction(")[0] if first else ""
    inside = "\n".join(lines[first + 1 : last])
    return Nest(
        depth,
        variable,
        extent,
        _PRAGMAS.get(pragma)
        or " and ".join(f"{one}s" for one in _SHARED.findall(start))
        or "serial",
        first,
        last,
        tuple(sorted(set(_ARRAY.findall(inside)))),
        tuple(dict.fromkeys(_CALL.findall(inside))),
    )
