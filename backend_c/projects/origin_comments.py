"""Render C comments that name the HLO instructions of a kernel.

The text of a module is hostile: of names only letters, digits and a few signs are kept, so that no
comment ends early, no line goes on in the next and no trigraph begins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from backend_c.lower.plan import Origin
from hlo.module import Computation, Instruction

_MOST_INSTRUCTIONS, _MOST_LAUNCHES = 24, 4
_MOST_NAME, _MOST_SHAPE, _MOST_OPERANDS = 60, 80, 8
_NOT_NAME, _NOT_SHAPE = (
    re.compile(r"[^A-Za-z0-9_.\-]"),
    re.compile(r"[^A-Za-z0-9_.,<=:()\[\]{} \-]"),
)


def safe_name(name: str) -> str:
    """Return a name with only characters that are safe in comments and strings of C."""
    return _NOT_NAME.sub("_", name[:_MOST_NAME])


def safe_shape(shape: object) -> str:
    """Return the text of a shape with only characters that are safe in comments of C."""
    text = str(shape)
    return _NOT_SHAPE.sub("_", text if len(text) <= _MOST_SHAPE else f"{text[:_MOST_SHAPE]}...")


def origin_comment(origins: Sequence[Origin], note: str = "") -> str:
    """Return a comment with the instructions of a kernel's launches, the first one in full, and a
    note.
    """
    names = [safe_name(o.instruction) for o in origins[:_MOST_LAUNCHES] if o.instruction]
    if not names:
        return ""
    more = len(origins) - len(names)
    told = ", ".join(f"%{name}" for name in names) + (f" and {more} more" if more > 0 else "")
    lines = [f"{told} of {safe_name(origins[0].computation)}{note}"]
    if origins[0].computes is not None:
        lines += _instructions(origins[0].computes)
    return "/* " + "\n * ".join(lines) + " */\n"


def _instructions(computation: Computation) -> list[str]:
    """Return the instructions of a computation that are not its parameters."""
    computing = [i for i in computation.instructions if i.opcode != "parameter"]
    lines = [_instruction(i, computation) for i in computing[:_MOST_INSTRUCTIONS]]
    left = len(computing) - len(lines)
    return [*lines, f"  and {left} more"] if left else lines


def _instruction(instruction: Instruction, computation: Computation) -> str:
    """Return an instruction without its attributes."""
    root = "ROOT " if instruction.name == computation.root else ""
    shown = [safe_name(name) for name in instruction.operands[:_MOST_OPERANDS]]
    operands = ", ".join([*shown, *["..."] * (len(instruction.operands) > len(shown))])
    name, shape = safe_name(instruction.name), safe_shape(instruction.shape)
    return f"  {root}{name} = {shape} {safe_name(instruction.opcode)}({operands})"
