"""Explain a violated constraint: quote the instruction and its operands, and state the rule."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import NamedTuple

from hlo.module import Computation, Instruction, Module
from hlo.walk import Op

_MOST_OPERANDS = 4
_LONGEST = 90  # characters of an instruction
_LONGEST_OPERAND = 48

# Labels of what all instructions must keep.
_LABELS = {
    "attributes": "attributes that the opcode has, and all that it needs",
    "bounds": "bounded dimensions where they are allowed",
    "calls": "computations that stand above their callers",
    "chain": "each start has its done, in the same computation",
    "channel": "channel ids that only belonging instructions share",
    "composite": "what a composite call must name",
    "control-predecessors": "instructions of the same computation",
    "groups": "each rank in at most one replica group, and none that is not there",
    "layout": "a layout permutes the dimensions",
    "names": "each name once in a computation",
    "opcode": "an opcode of HLO",
    "operands": "as many operands as the opcode takes, each defined above",
    "parameters": "parameters are numbered from 0, each once",
    "rank": "no more dimensions than can be",
    "shape": "the declared shape is the one that follows from the operands",
    "size": "no more elements than can be",
    "thread": "execution threads that called computations share",
}


class Place(NamedTuple):
    """Locate an instruction: its module, and its computation if that is known."""

    module: Module
    computation: Computation | None
    instruction: Instruction


def details(place: Place, label: str, op: Op | None) -> tuple[str, ...]:
    """Return lines that explain a fault: the instruction with its operands (if the module was
    parsed from text), and the meaning of the label (if it is known)."""
    module, computation, instruction = place
    found = []
    text = _text(module, instruction, _LONGEST)
    if text:
        operands = "; ".join(_operands(module, computation, instruction))
        found.append(f"    {text}" + (f"    where {operands}" if operands else ""))
    meaning = _meaning(label, instruction.opcode, op)
    return (*found, f"    {label}: {meaning}") if meaning else tuple(found)


def _operands(
    module: Module, computation: Computation | None, instruction: Instruction
) -> Iterator[str]:
    """Yield the texts of the operands' definitions, the first few of many."""
    names = list(dict.fromkeys(instruction.operands))
    above = {i.name: i for i in computation.instructions} if computation else {}
    for name in names[:_MOST_OPERANDS]:
        operand = above.get(name)
        if operand is not None and operand.offset >= 0:
            yield _text(module, operand, _LONGEST_OPERAND)
    if len(names) > _MOST_OPERANDS:
        yield f"and {len(names) - _MOST_OPERANDS} more"


def _text(module: Module, instruction: Instruction, longest: int) -> str:
    """Return the first ``longest`` characters of the line that defines an instruction."""
    if not 0 <= instruction.offset < len(module.text):
        return ""
    end = module.text.find("\n", instruction.offset)
    line = module.text[instruction.offset : end if end >= 0 else None][: 4 * longest]
    line = " ".join(line.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def _meaning(label: str, opcode: str, op: Op | None) -> str:
    """Return the rule behind a label; those of C1, C2, … are in the op function's docstring."""
    if label in _LABELS or op is None:
        return _LABELS.get(label, "")
    words = " ".join((inspect.getdoc(op.function) or "").split())
    stated = re.search(rf"\b{re.escape(label)}: ([^;.]*+)", words)
    place = f"a rule of {opcode} ({op.home.replace('.', '/')}.py)"
    return f"{place}: {stated[1]}" if stated else place
