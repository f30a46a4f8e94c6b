"""Turn selects between long sequences into branches, for processors without vectors.

Elementary functions compute all sequences and select one, so that loops of them become vectors.
Without vectors that takes the time of all. What only one side of a select needs is sunk into a
branch of its own; compilers do that for some selects of some functions, and not for others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import NamedTuple

_INDENT = "    "
_LINE = re.compile(rf"{_INDENT}const (\w+) ([dfuh]\d+) = (.*);")
_RETURN = re.compile(rf"{_INDENT}return (.*);")
_SELECT = re.compile(r"(h\d+) \? ([dfuh]\d+|[^ ]+) : ([dfuh]\d+|[^ ]+)")
_NAME = re.compile(r"\b[dfuh]\d+\b")
_FEWEST = 4  # lines of a side: fewer take less time than a jump (Cortex-M4, of tanh and of exp)


class _Line(NamedTuple):
    """Hold the definition of a variable: its lines of C, and the variables that they read."""

    kind: str
    name: str
    value: str
    lines: tuple[str, ...]
    reads: Set[str]


def with_branches(text: str) -> str:
    """Rewrite C functions of one operation per line: long selects become branches."""
    result: list[str] = []
    block: list[_Line] = []
    for line in text.split("\n"):
        if found := _LINE.fullmatch(line):
            kind, name, value = found.groups()
            block.append(_Line(kind, name, value, (line,), set(_NAME.findall(value))))
            continue
        if block and (found := _RETURN.fullmatch(line)):
            last = _Line("", "", "", (), set(_NAME.findall(found[1])))
            result += [one for part in _branched([*block, last]) for one in part.lines]
        else:
            result += [one for part in block for one in part.lines]
        block = []
        result.append(line)
    return "\n".join(result)


def _branched(block: Sequence[_Line]) -> list[_Line]:
    """Replace selects by branches, from the last line back; the last line is the block's result.

    The last select is taken first, as its sides contain the most code.
    """
    lines = list(block)
    at = len(lines) - 1
    while at > 0:
        at -= 1
        select = _SELECT.fullmatch(lines[at].value)
        if select is None or select[2] == select[3] or select[1] in (select[2], select[3]):
            continue
        sides = [_only_for(lines, at, side) for side in (select[2], select[3])]
        if max(map(len, sides)) < _FEWEST:
            continue
        inside = {line.name for side in sides for line in side}
        lines[at] = _branch(lines[at], select, sides)
        lines = [line for line in lines if line.name not in inside]
        at -= len(inside)
    return lines


def _only_for(lines: Sequence[_Line], at: int, result: str) -> list[_Line]:
    """Return the lines before a select that only one of its sides depends on, in order."""
    kept: list[_Line] = []
    # What a later line, the condition or the other side reads must be defined on both paths.
    needed = {name for line in lines[at + 1 :] for name in line.reads}
    needed |= lines[at].reads - {result}
    wanted = {result}
    for line in reversed(lines[:at]):
        if line.name in wanted and line.name not in needed:
            kept.append(line)
            wanted |= line.reads
        else:
            needed |= line.reads
    return kept[::-1]


def _branch(line: _Line, select: re.Match[str], sides: Sequence[Sequence[_Line]]) -> _Line:
    """Render a select as ``if``/``else``, with the lines of each side sunk into its branch."""
    text = [f"{_INDENT}{line.kind} {line.name};"]
    reads = {select[1]}
    heads = f"{_INDENT}if ({select[1]}) {{", f"{_INDENT}}} else {{"
    for head, side, result in zip(heads, sides, select.groups()[1:], strict=True):
        own = {one.name for one in side}
        last = _Line("", "", "", (), set(_NAME.findall(result)))
        inner = [one for part in _branched([*side, last]) for one in part.lines]
        text += [head, *(_INDENT + one for one in inner)]
        text.append(f"{_INDENT * 2}{line.name} = {result};")
        reads |= {name for one in (*side, last) for name in one.reads} - own
    return _Line(line.kind, line.name, "", (*text, f"{_INDENT}}}"), reads)
