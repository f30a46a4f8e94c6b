"""Locate instructions in the text of their module."""

from __future__ import annotations

from dataclasses import dataclass

from hlo.module import Instruction

_LONGEST = 240  # characters of one


@dataclass(frozen=True, slots=True)
class Place:
    """Hold where an instruction is written: its line number (0 without a text), the line, and its
    raw metadata."""

    line: int
    text: str
    metadata: str = ""


def place_of(text: str, instruction: Instruction) -> Place:
    """Return the line of an instruction by its offset; without a text, its shape and opcode."""
    metadata = instruction.annotations.get("metadata", "")
    start = instruction.offset
    if start < 0 or not text:
        return Place(0, f"{instruction.name} = {instruction.shape} {instruction.opcode}", metadata)
    end = text.find("\n", start)
    shown = text[start : end if end >= 0 else len(text)].partition(", metadata={")[0].strip()
    cut = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]} …"
    return Place(text.count("\n", 0, start) + 1, cut, metadata)


def written_name(text: str, instruction: Instruction) -> str:
    """Return the instruction's name in the text: inlining may have renamed it."""
    if instruction.offset < 0 or not text:
        return instruction.name
    line = text[instruction.offset : text.find("\n", instruction.offset)]
    return line.partition(" = ")[0].strip().removeprefix("ROOT ").strip().removeprefix("%")
