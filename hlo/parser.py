"""HLO text to a Module: one regular expression per instruction, fields by their brackets.

The grammar is that of XLA's ``hlo_parser.cc``, in the dialects that its printers write. Shapes are
read once per text, attributes once per ``name=value``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from hlo.attributes import ANNOTATIONS, Attribute
from hlo.codecs import CODECS
from hlo.errors import ParseError
from hlo.literal import Literal
from hlo.literal_text import LiteralError, read_literal
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import OPCODES
from hlo.scanning import Unbalanced, closing, parts
from hlo.shapes import ShapeReader
from hlo.types import Shape, compatible

_SPACE = re.compile(r"(?:\s++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_NAME = r'(?:[A-Za-z_][\w.\-]*+|"[^"\n]*+")'
_MODULE = re.compile(rf"HloModule\s++%?({_NAME})")
_COMPUTATION = re.compile(rf"(ENTRY\s++)?%?({_NAME})\s*+(?=[({{])")
_TABLE = re.compile(r"(?:FileNames|FunctionNames|FileLocations|StackFrames)\b")
_HEAD = re.compile(
    rf"(ROOT\s++)?%?({_NAME})\s*+=\s*+"
    r"([a-z]\w*+\[[^\]\n]*+\](?:\{[^}\n]*+\})?|(?=\())?\s*+"
)
_OPCODE = re.compile(r"([a-z][a-z0-9\-]*+)\s*+\(")
_PLAIN = re.compile(r"[^()\"'/]*+\)")  # operands without brackets of their own, nor comments
_OPERAND = re.compile(rf"(?:(.*\S)\s++)?%?({_NAME})\Z", re.S)
_ATTRIBUTE = re.compile(r"\s*+,\s*+([A-Za-z_][\w\-]*+)\s*+=\s*+")
_VALUE = re.compile(r"[^\s,{}()\[\]\"']++")
_COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*+\*/")


def parse(text: str) -> Module:
    """The module of a text; ParseError says where it is not HLO."""
    return _Parser(text).module()


@dataclass(slots=True)
class _Parser:
    text: str
    shapes: ShapeReader = field(default_factory=ShapeReader)
    attributes: dict[str, Attribute] = field(default_factory=dict)
    computations: dict[str, Computation] = field(default_factory=dict)

    # Errors

    def fail(self, message: str, position: int) -> NoReturn:
        position = min(position, len(self.text))
        line = self.text.count("\n", 0, position) + 1
        start = self.text.rfind("\n", 0, position) + 1
        end = self.text.find("\n", position)
        source = self.text[start : end if end >= 0 else len(self.text)]
        raise ParseError(message, line, position - start + 1, source)

    def skip(self, position: int) -> int:
        """Behind white space and comments."""
        match = _SPACE.match(self.text, position)
        assert match is not None
        return match.end()

    def closing(self, position: int) -> int:
        try:
            return closing(self.text, position)
        except Unbalanced as error:
            self.fail(str(error), error.position)

    # The module

    def module(self) -> Module:
        position = self.skip(0)
        match = _MODULE.match(self.text, position)
        if match is None:
            self.fail("expected HloModule", position)
        end = self._line_end(match.end())
        header = self._fields(match.end(), end)
        position, preamble = self._preamble(end)
        entry = None
        while position < len(self.text):
            name, is_entry, position = self._computation(position)
            if is_entry and entry is not None:
                self.fail("a second ENTRY computation", position)
            entry = name if is_entry else entry
            position = self.skip(position)
        if not self.computations:
            self.fail("a module needs a computation", position)
        names = list(self.computations)
        return Module(
            match[1].strip('"'),
            tuple(self.computations.values()),
            entry if entry is not None else names[-1],
            header,
            preamble,
            self.text,
        )

    def _line_end(self, position: int) -> int:
        """The end of a line, not counting line breaks inside brackets."""
        for match in re.compile(r"[({\[\n]|\"(?:[^\"\\]|\\.)*+\"").finditer(self.text, position):
            if match.start() < position:
                continue
            if match[0] == "\n":
                return match.start()
            if match[0] in "({[":
                position = self.closing(match.start())
        return len(self.text)

    def _fields(self, start: int, end: int) -> dict[str, str]:
        """``, name=text, …`` as texts."""
        result: dict[str, str] = {}
        for first, last in parts(self.text, start, end):
            name, equals, value = self.text[first:last].partition("=")
            if first < last and not equals:
                self.fail("expected name=value", first)
            if first < last:
                result[name.strip()] = value.strip()
        return result

    def _preamble(self, position: int) -> tuple[int, str]:
        """The tables of files and frames, as text."""
        start = self.skip(position)
        position = start
        while _TABLE.match(self.text, position):
            blank = self.text.find("\n\n", position)
            end = blank if blank >= 0 else len(self.text)
            position = self.skip(end)
        return position, self.text[start:position].strip()

    # Computations

    def _computation(self, position: int) -> tuple[str, bool, int]:
        match = _COMPUTATION.match(self.text, position)
        if match is None:
            self.fail("expected a computation", position)
        name = match[2].strip('"')
        if name in self.computations:
            self.fail(f"computation {name!r} is defined twice", match.start(2))
        place = match.end()
        if self.text[place] == "(":
            place = self.skip(self.closing(place) + 1)
            if not self.text.startswith("->", place):
                self.fail("expected ->", place)
            place = self._shape(self.skip(place + 2))[1]
            place = self.skip(place)
        if not self.text.startswith("{", place):
            self.fail("expected {", place)
        instructions, root, place = self._instructions(place + 1)
        after = self._annotations_of(place)
        self.computations[name] = Computation(name, instructions, root, after[0])
        return name, match[1] is not None, after[1]

    def _annotations_of(self, position: int) -> tuple[dict[str, str], int]:
        """``, execution_thread="…"`` behind a computation."""
        found: dict[str, str] = {}
        while match := _ATTRIBUTE.match(self.text, position):
            end = self._value_end(match.end())
            found[match[1]] = self.text[match.end() : end]
            position = end
        return found, position

    def _shape(self, position: int) -> tuple[Shape, int]:
        """The shape at a position, and where it ends."""
        text = self.text
        if text.startswith("(", position):
            end = self.closing(position) + 1
        else:
            match = re.compile(r"\w++\[[^\]\n]*+\](?:\{[^}\n]*+\})?").match(text, position)
            if match is None:
                self.fail("expected a shape", position)
            end = match.end()
        try:
            return self.shapes.read(text[position:end]), end
        except ValueError as error:
            self.fail(str(error), position)

    def _instructions(self, position: int) -> tuple[tuple[Instruction, ...], str, int]:
        found: dict[str, Instruction] = {}
        root = None
        while True:
            position = self.skip(position)
            if self.text.startswith("}", position):
                break
            is_root, instruction, position = self._instruction(position, found)
            if instruction.name in found:
                self.fail(f"instruction {instruction.name!r} is defined twice", instruction.offset)
            found[instruction.name] = instruction
            if is_root and root is not None:
                self.fail("a second ROOT in one computation", instruction.offset)
            root = instruction.name if is_root else root
        if not found:
            self.fail("a computation needs an instruction", position)
        return tuple(found.values()), root or list(found)[-1], position + 1

    # Instructions

    def _instruction(
        self, position: int, known: Mapping[str, Instruction]
    ) -> tuple[bool, Instruction, int]:
        head = _HEAD.match(self.text, position)
        if head is None:
            self.fail("expected an instruction: name = shape opcode(operands)", position)
        place = head.end()
        if head[3]:
            shape = self._read_shape(head[3], head.start(3))
        else:
            shape, place = self._shape(head.end() if self.text[place : place + 1] == "(" else place)
            place = self.skip(place)
        match = _OPCODE.match(self.text, place)
        if match is None:
            self.fail("expected an opcode and (", place)
        opcode = match[1]
        if opcode not in OPCODES:
            self.fail(f"unknown opcode {opcode!r}{_suggestion(opcode, OPCODES)}", place)
        plain = _PLAIN.match(self.text, match.end())
        end = plain.end() - 1 if plain else self.closing(match.end() - 1)
        attributes: dict[str, Attribute] = {}
        operands: tuple[str, ...] = ()
        if opcode == "parameter":
            attributes["parameter_number"] = self._number(match.end(), end)
        elif opcode == "constant":
            attributes["literal"] = self._literal(shape, match.end(), end)
        else:
            operands = self._operands(match.end(), end, known)
        annotations: dict[str, str] = {}
        place = self._attributes(end + 1, attributes, annotations)
        name = head[2].strip('"')
        made = Instruction(name, shape, opcode, operands, attributes, annotations, position)
        return head[1] is not None, made, place

    def _read_shape(self, text: str, position: int) -> Shape:
        try:
            return self.shapes.read(text)
        except ValueError as error:
            self.fail(str(error), position)

    def _number(self, start: int, end: int) -> int:
        text = self.text[start:end].strip()
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            self.fail("expected the number of a parameter", start)
        return int(text)

    def _literal(self, shape: Shape, start: int, end: int) -> Literal:
        try:
            return read_literal(shape, self.text[start:end])
        except LiteralError as error:
            self.fail(str(error), start + error.position)

    def _operands(self, start: int, end: int, known: Mapping[str, Instruction]) -> tuple[str, ...]:
        names: list[str] = []
        for first, last in parts(self.text, start, end):
            text = _COMMENT.sub("", self.text[first:last]).strip()
            match = _OPERAND.match(text)
            if match is None:
                self.fail("expected an operand", first)
            name = match[2].strip('"')
            if name not in known:
                hint = _suggestion(name, known)
                self.fail(f"operand {name!r} is not defined above{hint}", last - len(match[2]))
            if match[1]:
                given = self._read_shape(match[1], first)
                if not compatible(given, known[name].shape):
                    self.fail(f"operand {name!r} is {known[name].shape}, not {given}", first)
            names.append(name)
        return tuple(names)

    def _attributes(
        self, position: int, attributes: dict[str, Attribute], annotations: dict[str, str]
    ) -> int:
        """Reads ``, name=value`` as often as it stands there; where the last one ends."""
        while match := _ATTRIBUTE.match(self.text, position):
            name = match[1]
            end = self._value_end(match.end())
            if name in attributes or name in annotations:
                self.fail(f"attribute {name!r} is given twice", match.start(1))
            if name in ANNOTATIONS:
                annotations[name] = self.text[match.end() : end]
            else:
                attributes[name.replace("-", "_")] = self._attribute(name, match, end)
            position = end
        return position

    def _attribute(self, name: str, match: re.Match[str], end: int) -> Attribute:
        key = self.text[match.start(1) : end]
        value = self.attributes.get(key)
        if value is None:
            codec = CODECS.get(name)
            if codec is None:
                hint = _suggestion(name, CODECS)
                self.fail(f"unexpected attribute {name!r}{hint}", match.start(1))
            try:
                value = codec.read(self.text[match.end() : end])
            except ValueError as error:
                self.fail(f"{name}: {error}", match.end())
            self.attributes[key] = value
        return value

    def _value_end(self, position: int) -> int:
        """Where an attribute's value ends: words, strings and brackets up to a comma or a line."""
        text = self.text
        while position < len(text):
            character = text[position]
            if character in "({[":
                position = self.closing(position) + 1
            elif character in "\"'":
                match = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'", re.S).match(
                    text, position
                )
                if match is None:
                    self.fail("nothing closes this string", position)
                position = match.end()
            elif match := _VALUE.match(text, position):
                position = match.end()
            else:
                break
        return position


def _suggestion(name: str, known: Mapping[str, object] | frozenset[str]) -> str:
    """``; did you mean 'x'?`` if something known is spelled nearly so."""
    if len(name) > 100:
        return ""
    close = difflib.get_close_matches(name, list(known)[:10000], 1)
    return f"; did you mean {close[0]!r}?" if close else ""
