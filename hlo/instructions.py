"""Plain lines: ``ROOT name = shape opcode(operands), attributes``, nothing nested, nothing wrong.

Nearly all of a dump are such lines. Each is cut at its separators, and its parts are looked up;
whatever is not known, or not as it should be, is left to the reader of expressions, which says what
is wrong with it.
"""

from __future__ import annotations

import re

from hlo.expressions import ExpressionReader, Known
from hlo.module import Instruction
from hlo.opcodes import OPCODES
from hlo.scanning import Source
from hlo.shapes import ARRAY, ShapeReader
from hlo.tails import Tail, TailReader

_TYPED = re.compile(rf"({ARRAY}) %?([\w.\-]++)(?:, |\Z)", re.ASCII)  # an operand with its shape
_CONTINUED = re.compile(r"^[^\S\n]*+,", re.M)  # a line that goes on with the one above
_PLAIN = {opcode: opcode for opcode in OPCODES}  # the name that all instructions share
_GIVEN = frozenset(("constant", "parameter"))
_NO_TAIL = Tail({}, {}, 0)
_PLAIN_NAMES = re.compile(r"[A-Za-z_][\w.\-]*+(?:\n[A-Za-z_][\w.\-]*+)*+", re.ASCII)
_QUOTED = re.compile(r'(?:ROOT\s++)?+%?"')
_new = tuple.__new__  # half the time of Instruction(…), whose __new__ is Python


class LineReader:
    """Reads the plain lines of one source."""

    def __init__(
        self,
        source: Source,
        shapes: ShapeReader,
        tails: TailReader,
        expressions: ExpressionReader,
    ) -> None:
        self._code, self._shapes, self._tails = source.code, shapes.known, tails
        self._expressions = expressions
        self._continued = _CONTINUED.search(source.code) is not None

    def read(self, position: int, known: Known) -> tuple[list[str], int]:
        """Adds the instructions of the plain lines at a position to ``known``; the names of those
        that are marked as root, and where the first other line starts."""
        roots: list[str] = []
        code, read = self._code, self._line
        end = -1 if self._continued else code.find("\n", position)
        while end >= 0:
            line = code[position:end].lstrip()
            name, separator, rest = line.partition(" = ")
            made = read(name, rest, end, known) if separator else None
            if made is None:
                break
            if name.startswith("ROOT "):
                roots.append(made.name)
            known[made.name] = made
            position = end + 1
            end = code.find("\n", position)
        return roots, position

    def _line(self, name: str, rest: str, end: int, known: Known) -> Instruction | None:
        """The instruction of a line; None if anything in it is unusual or wrong. Its name is not
        looked at closely: see :func:`odd_name`."""
        offset = end - len(rest) - 3 - len(name)
        name = name.removeprefix("ROOT ").removeprefix("%")
        # No ") " is inside of a tuple shape as it is printed.
        text, separator, rest = rest.partition(") " if rest.startswith("(") else " ")
        shape_text = text + separator[:-1]
        shape = self._shapes.get(shape_text)
        opcode, _, rest = rest.partition("(")
        inside, closed, rest = rest.partition(")")
        shared = _PLAIN.get(opcode)
        if shape is None or shared is None or not closed or name in known:
            return None
        if '"' in name or "%" in name or name != name.strip():
            return None
        tail = self._tails.line(end - len(rest), rest) if rest else _NO_TAIL
        if tail is None:
            return None
        attributes = tail.attributes
        operands: tuple[str, ...] | None = ()
        if shared in _GIVEN:
            if attributes:
                return None
            start = end - len(rest) - 1 - len(inside)
            attributes = self._expressions.given(
                shared, shape, shape_text, start, start + len(inside)
            )
        elif inside:
            operands = self._typed(inside, known) if "[" in inside else _operands(inside, known)
            if operands is None:
                return None
        fields = name, shape, shared, operands, attributes, tail.annotations, offset
        return _new(Instruction, fields)

    def _typed(self, text: str, known: Known) -> tuple[str, ...] | None:
        """Operands that stand with the very shapes that they have; None if one is otherwise."""
        pairs = _TYPED.findall(text)
        length = 4 * len(pairs) - 2 - (0 if "%" in text else len(pairs))  # of ", ", " " and "%"
        shapes = self._shapes
        for shape, name in pairs:
            operand = known.get(name)
            if operand is None or operand.shape is not shapes.get(shape):
                return None
            length += len(shape) + len(name)
        return tuple([known[name].name for _, name in pairs]) if length == len(text) else None


def _operands(text: str, known: Known) -> tuple[str, ...] | None:
    """The names between the commas, as those above have them; None if one of them has no such."""
    try:
        if text.startswith("%"):
            return tuple([known[name].name for name in text[1:].split(", %")])
        return tuple([known[name].name for name in text.split(", ")])
    except KeyError:
        pass
    try:  # /*index=5*/
        names = [name.strip().removeprefix("%") for name in text.split(",")]
        return tuple([known[name].name for name in names])
    except KeyError:
        return None


def odd_name(code: str, known: Known) -> Instruction | None:
    """The first instruction with a name that is neither plain nor in quotes."""
    if _PLAIN_NAMES.fullmatch("\n".join(known)):
        return None
    odd = (i for name, i in known.items() if not _PLAIN_NAMES.fullmatch(name))
    return next((i for i in odd if not _QUOTED.match(code, i.offset)), None)
