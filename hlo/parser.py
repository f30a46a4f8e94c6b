"""HLO text to a Module: one regular expression per line, fields by their brackets.

The grammar is that of XLA's ``hlo_parser.cc``, in the dialects that its printers write. Nearly all
instructions stand on a line of their own without nested brackets; these are read by one pattern,
their shapes and tails looked up. All others, and whatever is wrong, are read field by field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hlo.instructions import InstructionReader
from hlo.module import Computation, Instruction, Module
from hlo.scanning import NAME, Source, plain_name, source_of
from hlo.shapes import ShapeReader
from hlo.tails import TailReader
from hlo.types import compatible

_MODULE = re.compile(rf"HloModule\s++%?({NAME})", re.ASCII)
_COMPUTATION = re.compile(rf"(ENTRY\s++)?+%?({NAME})\s*+(?=[({{])", re.ASCII)
_TABLE = re.compile(
    r"(?:FileNames|FunctionNames|FileLocations|StackFrames)\b\s*+(?:\d++[ \t][^\n]*+\s*+)*+",
    re.ASCII,
)


def parse(text: str) -> Module:
    """The module of a text; ParseError says where it is not HLO.

    Names are kept, so are attributes of the header, tables of files and frames, and annotations
    (as text). Shapes written beside operands are checked and dropped, comments are dropped. Without
    a header, the module is named for its entry.
    """
    return _ModuleReader(source_of(text)).module()


class _ModuleReader:
    """Reads one module; its computations in the order of the text."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._computations: dict[str, Computation] = {}
        self._shapes = ShapeReader()
        self._tails = TailReader(source, self._computations)
        self._instructions = InstructionReader(source, self._shapes, self._tails)

    def module(self) -> Module:
        source = self._source
        position = source.skip(0)
        match = _MODULE.match(source.code, position)
        if match is None and not _COMPUTATION.match(source.code, position):
            source.fail("expected HloModule", position)
        header, end = self._tails.raw(position if match is None else match.end())
        position, preamble = self._preamble(end)
        entry = None
        while position < len(source.code):
            name, is_entry, end = self._computation(position)
            if is_entry and entry is not None:
                source.fail("a second ENTRY computation", position)
            entry = name if is_entry else entry
            position = source.skip(end)
        if not self._computations:
            source.fail("a module needs a computation", position)
        entry = entry if entry is not None else next(reversed(self._computations))
        return Module(
            f"module_{entry}" if match is None else plain_name(match[1]),
            tuple(self._computations.values()),
            entry,
            header,
            preamble,
            source.text,
        )

    def _preamble(self, position: int) -> tuple[int, str]:
        """Behind the tables of files and frames, and their text."""
        start = position = self._source.skip(position)
        while match := _TABLE.match(self._source.code, position):
            position = match.end()
        return position, self._source.text[start:position].strip()

    def _computation(self, position: int) -> tuple[str, bool, int]:
        """Reads one: its name, whether it is ENTRY, and where it ends."""
        source = self._source
        match = _COMPUTATION.match(source.code, position)
        if match is None:
            source.fail("expected a computation", position)
        name = plain_name(match[2])
        if name in self._computations:
            source.fail(f"computation {name!r} is defined twice", match.start(2))
        place, result = match.end(), None
        if source.code[place] == "(":
            place = source.skip(source.closing(place) + 1)
            if not source.code.startswith("->", place):
                source.fail("expected ->", place)
            result = source.skip(place + 2)
            place = source.skip(self._instructions.shape(result)[1])
        if not source.code.startswith("{", place):
            source.fail("expected {", place)
        found, root, place = self._body(place + 1)
        if result is not None:
            self._check_result(result, found[root])
        annotations, place = self._tails.raw(place)
        self._computations[name] = Computation(name, tuple(found.values()), root, annotations)
        return name, match[1] is not None, place

    def _check_result(self, position: int, root: Instruction) -> None:
        given, _ = self._instructions.shape(position)
        if not compatible(given, root.shape):
            message = f"the result is declared {given}, root {root.name!r} is {root.shape}"
            self._source.fail(message, position)

    def _body(self, position: int) -> tuple[Mapping[str, Instruction], str, int]:
        """The instructions up to the closing brace, the root's name, and where they end."""
        source, read = self._source, self._instructions.read
        found: dict[str, Instruction] = {}
        root = None
        position = source.skip(position)
        while not source.code.startswith("}", position):
            is_root, instruction, position = read(position, found)
            name = instruction.name
            if name in found:
                source.fail(f"instruction {name!r} is defined twice", instruction.offset)
            found[name] = instruction
            if is_root:
                if root is not None:
                    source.fail("a second ROOT in one computation", instruction.offset)
                root = name
        if not found:
            source.fail("a computation needs an instruction", position)
        return found, root if root is not None else next(reversed(found)), position + 1
