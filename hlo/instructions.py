"""Instructions from text: most by one pattern, the others field by field."""

from __future__ import annotations

import re

from hlo.expressions import ExpressionReader, Known
from hlo.module import Instruction
from hlo.opcodes import OPCODES
from hlo.scanning import Source
from hlo.shapes import ARRAY, ShapeReader
from hlo.tails import Tail, TailReader

# A whole line: ROOT, name, shape, opcode, what is in the parentheses, the tail. The next line does
# not go on with the tail; the match ends where its text starts.
_LINE = re.compile(
    r"(ROOT )?+%?+([A-Za-z_][\w.\-]*+) = "
    rf"({ARRAY}|\((?:[^()\n]++|\([^()\n]*+\))*+\)) "
    r"([a-z][a-z0-9\-]*+)\(([^()\n\"']*+)\)([^\n]*+)\n\s*+(?![,\s])",
    re.ASCII,
)
_TYPED = re.compile(rf"({ARRAY}) %?([\w.\-]++)(?:, |\Z)", re.ASCII)  # an operand with its shape
_UNUSUAL = ("?",)  # no instruction's name
_NO_TAIL = Tail({}, {}, 0)


class InstructionReader:
    """Reads instructions of one source."""

    def __init__(
        self,
        source: Source,
        shapes: ShapeReader,
        tails: TailReader,
        expressions: ExpressionReader,
    ) -> None:
        self._source, self._shapes, self._tails = source, shapes, tails
        self._expressions = expressions

    def read(self, position: int, known: Known) -> tuple[bool, Instruction, int]:
        """Whether it is the root, the instruction, and where the text goes on.

        ``known`` has the instructions above it in its computation.
        """
        line = _LINE.match(self._source.code, position)
        made = None if line is None else self._line(line, known)
        if line is None or made is None:
            return self._expressions.read(position, known)
        return line[1] is not None, made, line.end()

    def _line(self, line: re.Match[str], known: Known) -> Instruction | None:
        """The instruction of a plain line; None if anything in it is unusual or wrong."""
        _, name, shape_text, opcode, inside, rest = line.groups()
        shape = self._shapes.known.get(shape_text)
        if shape is None:
            shape, _ = self._expressions.shape(line.start(3))
        tail = self._tails.line(line.start(6), rest) if rest else _NO_TAIL
        if tail is None or opcode not in OPCODES:
            return None
        attributes = tail.attributes
        operands: tuple[str, ...] = ()
        if opcode == "constant" or opcode == "parameter":
            if attributes:
                return None
            start, end = line.span(5)
            attributes = self._expressions.given(opcode, shape, shape_text, start, end)
        elif inside:
            operands = self._typed(inside, known) if "[" in inside else _names(inside)
            for operand in operands:
                if operand not in known:
                    return None
        return Instruction(
            name, shape, opcode, operands, attributes, tail.annotations, line.start()
        )

    def _typed(self, text: str, known: Known) -> tuple[str, ...]:
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


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.replace("%", "").split(", "))
