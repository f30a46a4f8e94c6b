"""Read plain lines, ``ROOT name = shape opcode(operands), attributes`` without nesting or errors.

Nearly all lines of a dump are plain. Each is split at its separators, and its parts are looked up
in tables; if one is unknown or malformed, the line is left to :mod:`hlo.text.expressions`, which
reports errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hlo.attributes import Attribute
from hlo.module import Instruction
from hlo.opcodes import OPCODES
from hlo.text.attribute_lists import TailReader
from hlo.text.expressions import ExpressionReader, Known
from hlo.text.patterns import pattern
from hlo.text.scanning import Source
from hlo.text.shapes import ARRAY, ShapeReader
from hlo.types import Shape

_TYPED = pattern(rf"({ARRAY}) %?([\w.\-]++)(?:, |\Z)", re.ASCII)  # an operand with its shape
_CONTINUED = pattern(r"^[^\S\n]*+,", re.M)  # a line that goes on with the one above
# The name that all instructions share. What an async-update calls may be left to its async-start.
_PLAIN = {opcode: opcode for opcode in OPCODES if opcode != "async-update"}
_PLAIN_NAMES = pattern(r"[A-Za-z_][\w.\-]*+(?:\n[A-Za-z_][\w.\-]*+)*+", re.ASCII)
_QUOTED = pattern(r'(?:ROOT\s++)?+%?"')
_new = tuple.__new__  # half the time of Instruction(…), whose __new__ is Python


_Given = dict[str, Mapping[str, Attribute]]


class _Heads(dict[str, tuple[Shape, str, str, _Given | None]]):
    """Cache the parse of ``shape opcode``: the shape, the opcode, the shape's text, and, for
    constants and parameters, a cache of their parentheses. Raises KeyError if it is not plain."""

    def __init__(self, shapes: ShapeReader) -> None:
        self._shapes = shapes
        self._parameters: _Given = {}

    def __missing__(self, text: str) -> tuple[Shape, str, str, _Given | None]:
        shape_text, _, opcode = text.rpartition(" ")
        opcode = _PLAIN[opcode]
        try:
            shape = self._shapes.read(shape_text)
        except ValueError:
            raise KeyError(text) from None
        given = {"parameter": self._parameters, "constant": _Given()}.get(opcode)
        found = self[text] = shape, opcode, shape_text, given
        return found


def _tuple_head(text: str) -> tuple[str, str]:
    """Split off ``(shapes) opcode``; return it, and the text behind the parenthesis that follows. A
    printed tuple shape contains no ") "."""
    shapes, _, rest = text.partition(") ")
    opcode, _, behind = rest.partition("(")
    return f"{shapes}) {opcode}", behind


class LineReader:
    """Read the plain lines of one source."""

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
        self._heads = _Heads(shapes)
        self._known = Known()
        self._spelled: dict[str, str] = {}  # names of known ones, as operands are spelled
        self._is_typed = False  # whether that is with their shapes

    def read(self, position: int, known: Known) -> tuple[list[str], int]:
        """Add the instructions of consecutive plain lines to ``known``; return the names marked
        ROOT, and where the first other line starts. Names are only checked coarsely: see
        :func:`odd_name`."""
        if self._known is not known:
            self._known, self._spelled = known, {}
        roots: list[str] = []
        code, heads, tails, spelled = self._code, self._heads, self._tails.known, self._spelled
        end = -1 if self._continued else code.find("\n", position)
        while end >= 0:
            line = code[position:end].lstrip()
            before, _, rest = line.partition(" = ")
            head, _, inside = rest.partition("(")
            if not head:
                head, inside = _tuple_head(rest)
            inside, closed, tail = inside.partition(")")
            spelling = before.removeprefix("ROOT ")
            name = spelling.removeprefix("%")
            # Names in quotes, before a colon, or next to a tab are left to ExpressionReader.
            if not closed or not name.isprintable() or " " in name or '"' in name or ":" in name:
                break
            if name in known:
                break
            try:
                shape, opcode, shape_text, given = heads[head]
                attributes, annotations = tails.get(tail) or self._tails.line(end - len(tail), tail)
                operands: tuple[str, ...] = ()
                if given is not None:
                    key = "" if attributes else inside  # none may follow
                    place = end - len(tail) - len(inside) - 1
                    attributes = given.get(key) or self._given(head, key, place)
                elif inside:
                    found = tuple(map(spelled.get, inside.split(", ")))
                    new = None in found
                    operands = self._operands(inside) if new else found  # type: ignore[assignment]  # has no None
            except KeyError:
                break
            known[name] = _new(
                Instruction,
                (name, shape, opcode, operands, attributes, annotations, end - len(line)),
            )
            spelled[f"{shape_text} {spelling}" if self._is_typed else spelling] = name
            if before != spelling:
                roots.append(name)
            position = end + 1
            end = code.find("\n", position)
        return roots, position

    def _given(self, head: str, text: str, place: int) -> Mapping[str, Attribute]:
        """Read the parentheses of a constant or parameter into the cache; KeyError if empty."""
        shape, opcode, shape_text, given = self._heads[head]
        if given is None or not text:
            raise KeyError(text)
        end = place + len(text)
        found = given[text] = self._expressions.given(opcode, shape, shape_text, place, end)
        return found

    def _operands(self, text: str) -> tuple[str, ...]:
        """Return the names of operands of which at least one is spelled in a new way."""
        self._is_typed = "[" in text
        return self._typed(text) if self._is_typed else self._untyped(text)

    def _untyped(self, text: str) -> tuple[str, ...]:
        """Return the names of operands without shapes; raise KeyError if one is not known."""
        known = self._known
        names = (name.strip().removeprefix("%") for name in text.split(","))  # /*index=5*/
        return tuple([known[name].name for name in names])

    def _typed(self, text: str) -> tuple[str, ...]:
        """Return the names of operands written with their shapes; raise KeyError if one differs."""
        pairs = _TYPED.findall(text)
        # findall skips what does not match: the lengths of what it found then do not add up.
        length = 4 * len(pairs) - 2 - (0 if "%" in text else len(pairs))  # of ", ", " " and "%"
        shapes, known = self._shapes, self._known
        for shape, name in pairs:
            # Shapes are cached by their text, so that equal ones, spelled alike, are one object.
            if known[name].shape is not shapes.get(shape):
                raise KeyError(name)
            length += len(shape) + len(name)
        if length != len(text):
            raise KeyError(text)
        return tuple([known[name].name for _, name in pairs])


def odd_name(code: str, known: Known) -> Instruction | None:
    """Return the first instruction whose name is neither plain nor in quotes, or None."""
    if _PLAIN_NAMES.fullmatch("\n".join(known)):
        return None
    odd = (i for name, i in known.items() if not _PLAIN_NAMES.fullmatch(name))
    return next((i for i in odd if not _QUOTED.match(code, i.offset)), None)
