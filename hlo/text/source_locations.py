"""Locate instructions in the user's source code, by file and line in their metadata.

Frameworks write ``metadata={op_name="jit(f)/sin" source_file="f.py" source_line=3}``, or, instead
of file and line, ``stack_frame_id=5``: a row of the tables before the first computation
(``Module.preamble``), which refers to a location, and that to a file name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property

from hlo.errors import Error
from hlo.module import Instruction, Module
from hlo.text.patterns import pattern

_LONGEST = 300  # characters of an origin in a message
_LINE_AT_END = pattern(r"from .{1,300}:\d++\)$")  # of a message that names a line of source
_OP_NAME = pattern(r'op_name="((?:[^"\\]|\\.)*+)"')
_FILE = pattern(r'source_file="((?:[^"\\]|\\.)*+)" source_line=(\d++)')
_FRAME = pattern(r"stack_frame_id=(\d++)")
_ROW = pattern(r"^(\d++) (.*)$", re.MULTILINE)
_FIELD = pattern(r"([a-z_]++)=(\d++)")


def located(error: Error, module: Module, instruction: Instruction) -> Error:
    """Return an error with an instruction added: ``LINE: %name = opcode: message (from ORIGIN)``.
    An error that names one already only gets the source line of the caller."""
    text, metadata = str(error), instruction.annotations.get("metadata", "")
    found = "".join(c if c.isprintable() else "?" for c in origin(metadata, module.preamble))
    if "%" not in text:
        line = line_of(module, instruction)
        source = f" (from {found[:_LONGEST]})" if found else ""
        return type(error)(f"{line}%{instruction.name} = {instruction.opcode}: {text}{source}")
    if not has_source(metadata) or _LINE_AT_END.search(text):
        return error
    return type(error)(f"{text} (called from {found[:_LONGEST]})")


def line_of(module: Module, instruction: Instruction) -> str:
    """Format an instruction's line number as the prefix of a message; "" without text."""
    if instruction.offset < 0 or not module.text:
        return ""
    return f"{module.text.count(chr(10), 0, instruction.offset) + 1}: "


def has_source(metadata: str) -> bool:
    """Return whether metadata names a source line."""
    return "stack_frame_id=" in metadata or "source_file=" in metadata


def operation_name(instruction: Instruction) -> str:
    """Return the ``op_name`` of an instruction's metadata, "" if there is none. For a parameter of
    a framework's program it is the user's own name."""
    found = _OP_NAME.search(instruction.annotations.get("metadata", ""))
    return found[1] if found else ""


def origin(metadata: str, preamble: str) -> str:
    """Format ``OP_NAME at FILE:LINE`` from metadata; parts that are missing are left out."""
    name = _OP_NAME.search(metadata)
    where = SourceLines(preamble).of(metadata)
    return " at ".join(part for part in (name[1] if name else "", where) if part)


class SourceLines:
    """Look up source lines of a module's instructions; its tables are parsed once."""

    def __init__(self, preamble: str) -> None:
        self._preamble = preamble

    def of(self, metadata: str) -> str:
        """Return FILE:LINE from the metadata of an instruction; empty if there is none."""
        place = _FILE.search(metadata)
        if place is not None:
            return f"{place[1]}:{place[2]}"
        frame = _FRAME.search(metadata)
        return "" if frame is None else self._framed(frame[1])

    @cached_property
    def _tables(self) -> tuple[Mapping[str, str], ...]:
        """Return the rows of the tables of frames, locations and file names, by number."""
        titles = ("StackFrames", "FileLocations", "FileNames")
        return tuple(_table(self._preamble, title) for title in titles)

    def _framed(self, number: str) -> str:
        """Look FILE:LINE up in the tables: stack frame, then location, then file name."""
        frames, locations, files = self._tables
        frame = _fields(frames.get(number, ""))
        location = _fields(locations.get(frame.get("file_location_id", ""), ""))
        file = files.get(location.get("file_name_id", ""), "")
        return f"{file.strip(chr(34))}:{location.get('line', '?')}" if file else ""


def _fields(row: str) -> Mapping[str, str]:
    """Return the fields of a row of a table by name."""
    return dict(_FIELD.findall(row))


def _table(preamble: str, title: str) -> dict[str, str]:
    _, found, rest = f"\n{preamble}\n".partition(f"\n{title}\n")
    return dict(_ROW.findall(rest.partition("\n\n")[0])) if found else {}
