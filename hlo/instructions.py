"""Instructions from text: most by one pattern, the others field by field."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hlo.attributes import Attribute
from hlo.literal import Literal
from hlo.literal_text import LiteralError, read_literal
from hlo.module import Instruction
from hlo.opcodes import OPCODES
from hlo.scanning import NAME, Source, parts, plain_name
from hlo.shapes import ShapeReader
from hlo.suggestion import suggestion
from hlo.tails import Tail, TailReader
from hlo.types import Shape, compatible

_ARRAY = r"[a-z]\w*+\[[^\]\n]*+\](?:\{[^}\n]*+\})?+"
# A whole line: ROOT, name, shape, opcode, what is in the parentheses, the tail. The next line does
# not go on with the tail; the match ends where its text starts.
_LINE = re.compile(
    r"(ROOT )?+%?+([A-Za-z_][\w.\-]*+) = "
    rf"({_ARRAY}|\((?:[^()\n]++|\([^()\n]*+\))*+\)) "
    r"([a-z][a-z0-9\-]*+)\(([^()\n\"']*+)\)([^\n]*+)\n\s*+(?![,\s])",
    re.ASCII,
)
_TYPED = re.compile(rf"({_ARRAY}) %?([\w.\-]++)(?:, |\Z)", re.ASCII)  # an operand with its shape
_HEAD = re.compile(rf"(ROOT\s++)?+%?({NAME})\s*+=\s*+", re.ASCII)
_ARRAY_SHAPE = re.compile(_ARRAY, re.ASCII)
_OPCODE = re.compile(r"([a-z][a-z0-9\-]*+)\s*+\(", re.ASCII)
_OPERAND = re.compile(rf"(?:(.*\S)\s++)?%?({NAME})\Z", re.S | re.ASCII)
_PARAMETER = re.compile(r"\s*+(\d{1,9}+)\s*+", re.ASCII)
_UNUSUAL = ("?",)  # no instruction's name
_NO_TAIL = Tail({}, {}, 0)


class InstructionReader:
    """Reads instructions of one source."""

    def __init__(self, source: Source, shapes: ShapeReader, tails: TailReader) -> None:
        self._source, self._shapes, self._tails = source, shapes, tails
        self._literals: dict[tuple[str, str], Literal] = {}

    def read(
        self, position: int, known: Mapping[str, Instruction]
    ) -> tuple[bool, Instruction, int]:
        """Whether it is the root, the instruction, and where the text goes on.

        ``known`` has the instructions above it in its computation.
        """
        line = _LINE.match(self._source.code, position)
        made = None if line is None else self._line(line, known)
        if line is None or made is None:
            return self._general(position, known)
        return line[1] is not None, made, line.end()

    def _line(self, line: re.Match[str], known: Mapping[str, Instruction]) -> Instruction | None:
        """The instruction of a plain line; None if anything in it is unusual or wrong."""
        _, name, shape_text, opcode, inside, rest = line.groups()
        shape = self._shapes.known.get(shape_text)
        if shape is None:
            shape, _ = self.shape(line.start(3))
        tail = self._tails.line(line.start(6), rest) if rest else _NO_TAIL
        if tail is None or opcode not in OPCODES:
            return None
        attributes = tail.attributes
        operands: tuple[str, ...] = ()
        if opcode == "constant" or opcode == "parameter":
            given = self._given(opcode, shape, shape_text, line.start(5), line.end(5))
            if attributes:
                return None
            attributes = given
        elif inside:
            operands = self._typed(inside, known) if "[" in inside else _names(inside)
            for operand in operands:
                if operand not in known:
                    return None
        return Instruction(
            name, shape, opcode, operands, attributes, tail.annotations, line.start()
        )

    def _typed(self, text: str, known: Mapping[str, Instruction]) -> tuple[str, ...]:
        """Operands that stand with the very shapes that they have; ``?`` if one is otherwise."""
        pairs = _TYPED.findall(text)
        length = 4 * len(pairs) - 2 - (0 if "%" in text else len(pairs))  # of ", ", " " and "%"
        shapes = self._shapes.known
        for shape, name in pairs:
            operand = known.get(name)
            if operand is None or operand.shape is not shapes.get(shape):
                return _UNUSUAL
            length += len(shape) + len(name)
        return tuple([name for _, name in pairs]) if length == len(text) else _UNUSUAL

    def _general(
        self, position: int, known: Mapping[str, Instruction]
    ) -> tuple[bool, Instruction, int]:
        source = self._source
        head = _HEAD.match(source.code, position)
        if head is None:
            source.fail("expected an instruction: name = shape opcode(operands)", position)
        shape, end = self.shape(head.end())
        place = source.skip(end)
        match = _OPCODE.match(source.code, place)
        if match is None:
            source.fail("expected an opcode and (", place)
        opcode = match[1]
        if opcode not in OPCODES:
            source.fail(f"unknown opcode {opcode!r}{suggestion(opcode, OPCODES)}", place)
        start, end = match.end(), source.closing(match.end() - 1)
        tail = self._tails.read(end + 1)
        attributes = tail.attributes
        operands: tuple[str, ...] = ()
        if opcode in ("constant", "parameter"):
            text = source.code[head.end() : place].strip()
            for unexpected in attributes:
                source.fail(f"unexpected attribute {unexpected!r} of a {opcode}", end)
            attributes = self._given(opcode, shape, text, start, end)
        else:
            operands = self._operands(start, end, known)
        name = plain_name(head[2])
        made = Instruction(name, shape, opcode, operands, attributes, tail.annotations, position)
        return head[1] is not None, made, source.skip(tail.end)

    def shape(self, position: int) -> tuple[Shape, int]:
        """The shape at a position, and where it ends."""
        code = self._source.code
        if code.startswith("(", position):
            end = self._source.closing(position) + 1
        else:
            match = _ARRAY_SHAPE.match(code, position)
            if match is None:
                self._source.fail("expected a shape", position)
            end = match.end()
        return self._shape(code[position:end], position), end

    def _shape(self, text: str, position: int) -> Shape:
        try:
            return self._shapes.read(text)
        except ValueError as error:
            self._source.fail(str(error), position)

    def _given(
        self, opcode: str, shape: Shape, shape_text: str, start: int, end: int
    ) -> dict[str, Attribute]:
        """What stands in the parentheses of a constant or a parameter."""
        text = self._source.code[start:end]
        if opcode == "parameter":
            match = _PARAMETER.fullmatch(text)
            if match is None:
                self._source.fail("expected the number of a parameter", start)
            return {"parameter_number": int(match[1])}
        key = shape_text, text
        literal = self._literals.get(key)
        if literal is None:
            try:
                literal = read_literal(shape, text)
            except LiteralError as error:
                self._source.fail(str(error), start + error.position)
            self._literals[key] = literal
        return {"literal": literal}

    def _operands(self, start: int, end: int, known: Mapping[str, Instruction]) -> tuple[str, ...]:
        source = self._source
        names: list[str] = []
        for first, last in parts(source.code, start, end):
            match = _OPERAND.match(source.code[first:last])
            if match is None:
                source.fail("expected an operand", first)
            name = plain_name(match[2])
            if name not in known:
                hint = suggestion(name, known)
                message = f"operand {name!r} is not defined above{hint}"
                source.fail(message, last - len(match[2]))
            if match[1]:
                given = self._shape(match[1], first)
                if not compatible(given, known[name].shape):
                    source.fail(f"operand {name!r} is {known[name].shape}, not {given}", first)
            names.append(name)
        return tuple(names)


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.replace("%", "").split(", "))
