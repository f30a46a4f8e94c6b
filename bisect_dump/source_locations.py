"""Locate instructions: their line in the HLO text, and the source line in their metadata."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hlo.module import Instruction

_LONGEST = 240  # characters of one
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*+)"')
_FILE = re.compile(r'source_file="((?:[^"\\]|\\.)*+)" source_line=(\d++)')
_FRAME = re.compile(r"stack_frame_id=(\d++)")
_ROW = re.compile(r"^(\d++) (.*)$", re.MULTILINE)
_FIELD = re.compile(r"([a-z_]++)=(\d++)")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an instruction is written: the line number in its text (0 if it has none), the line
    itself, and its raw metadata."""

    line: int
    text: str
    metadata: str = ""


def place_of(text: str, instruction: Instruction) -> Place:
    """Find the line of an instruction by its offset; without a text, print its shape and opcode."""
    metadata = instruction.annotations.get("metadata", "")
    start = instruction.offset
    if start < 0 or not text:
        return Place(0, f"{instruction.name} = {instruction.shape} {instruction.opcode}", metadata)
    end = text.find("\n", start)
    shown = text[start : end if end >= 0 else len(text)].partition(", metadata={")[0].strip()
    cut = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]} …"
    return Place(text.count("\n", 0, start) + 1, cut, metadata)


def written_name(text: str, instruction: Instruction) -> str:
    """Read the instruction's name from the text: inlining may have renamed it since."""
    if instruction.offset < 0 or not text:
        return instruction.name
    line = text[instruction.offset : text.find("\n", instruction.offset)]
    return line.partition(" = ")[0].strip().removeprefix("ROOT ").strip().removeprefix("%")


def origin(metadata: str, preamble: str) -> str:
    """Format ``OP_NAME at FILE:LINE`` from metadata; parts that are missing are left out."""
    name = _OP_NAME.search(metadata)
    place = _FILE.search(metadata)
    where = f"{place[1]}:{place[2]}" if place else _framed(metadata, preamble)
    return " at ".join(part for part in (name[1] if name else "", where) if part)


def _framed(metadata: str, preamble: str) -> str:
    """Look FILE:LINE up in the module's tables: stack frame, then location, then file name."""
    frame = _FRAME.search(metadata)
    if frame is None:
        return ""
    frames, locations = (
        {number: dict(_FIELD.findall(row)) for number, row in _table(preamble, title).items()}
        for title in ("StackFrames", "FileLocations")
    )
    location = locations.get(frames.get(frame[1], {}).get("file_location_id", ""), {})
    file = _table(preamble, "FileNames").get(location.get("file_name_id", ""), "")
    return f"{file.strip(chr(34))}:{location.get('line', '?')}" if file else ""


def _table(preamble: str, title: str) -> dict[str, str]:
    _, found, rest = f"\n{preamble}\n".partition(f"\n{title}\n")
    return dict(_ROW.findall(rest.partition("\n\n")[0])) if found else {}
