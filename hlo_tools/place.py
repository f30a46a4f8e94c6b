"""Instructions as they stand in a text."""

from __future__ import annotations

from dataclasses import dataclass

from hlo.module import Instruction

_LONGEST = 240  # characters of one


@dataclass(frozen=True, slots=True)
class Place:
    """An instruction: the line of the text that it is on (0: of no text), and what stands there."""

    line: int
    text: str
    metadata: str = ""


def place_of(text: str, instruction: Instruction) -> Place:
    metadata = instruction.annotations.get("metadata", "")
    start = instruction.offset
    if start < 0 or not text:
        return Place(0, f"{instruction.name} = {instruction.shape} {instruction.opcode}", metadata)
    end = text.find("\n", start)
    shown = text[start : end if end >= 0 else len(text)].partition(", metadata={")[0].strip()
    cut = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]} …"
    return Place(text.count("\n", 0, start) + 1, cut, metadata)


def written_name(text: str, instruction: Instruction) -> str:
    """The name in the text; inlining gave another one."""
    if instruction.offset < 0 or not text:
        return instruction.name
    line = text[instruction.offset : text.find("\n", instruction.offset)]
    return line.partition(" = ")[0].strip().removeprefix("ROOT ").strip().removeprefix("%")
