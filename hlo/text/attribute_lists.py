"""Read the attribute list of an instruction, ``, name=value, name=value`` (its *tail*).

Tails repeat: each is parsed once and cached by its text, without the metadata, which differ from
line to line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from hlo.attributes import ANNOTATIONS, COMPUTATION_ATTRIBUTES, Attribute
from hlo.text.codecs import CODECS
from hlo.text.patterns import pattern
from hlo.text.scanning import Source, parts
from hlo.text.shapes import ARRAY
from hlo.text.suggestion import suggestion

# A name, = right behind it, and a value, also on a later line; a scalar's padding= has none.
_ATTRIBUTE = pattern(
    r"\s*+,\s*+([A-Za-z_][\w.\-]*+)=(?:(?<!\bpadding=)\s*+|[ \t]*+(?:\s*+(?=[\d\-]))?+)", re.ASCII
)
_STRING = pattern(r""""(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'""", re.S)
_WORD = pattern(r"[^\s,{}()\[\]\"']++")
# replica_groups=mesh['x'=2], device_ids=([2]<=[2]) {'x'}
_MESH = pattern(
    r"mesh\[[^\[\]]*+\](?:\s*+,\s*+device_ids=\((?:[^()]++|\([^()]*+\))*+\))?+\s*+(?=\{)"
)
_LITERAL = pattern(rf"(?<=\bliteral=){ARRAY}[ \t]++(?=\S)", re.ASCII)  # literal=f32[2] {1, 2}
_LISTS = frozenset(("branch_computations", "called_computations"))
# Braces without brackets inside, but for those in strings: nearly all metadata.
_FLAT = r"\{[^{}\"'\[\]()\n]*+(?:\"(?:[^\"\\\n]++|\\.)*+\"[^{}\"'\[\]()\n]*+)*+\}"
_METADATA = pattern(_FLAT)
_SIMPLE = pattern(rf"(?:{_FLAT}|[^\s,{{}}()\[\]\"']++)(?=[,\n])")  # the whole of most values
_REMOVED = {
    "sparsity": "XLA has removed sparse operands of dot (jaxlib 0.10.2 reads none): put zeros"
    " between the elements, or write a convolution with a sparsity_config",
}
_NO_METADATA = ";"  # nothing that stands behind metadata
_IN_VALUE = (_MESH, _LITERAL, _WORD, _STRING)

V = TypeVar("V")


def _metadata_end(text: str) -> int:
    """Return the length of the braces that a text starts with, 0 if they are not plain. Most have
    no braces in strings, so that the first closing brace is the last."""
    end = text.find("}") + 1
    found = text[:end]
    plain = found.rfind("{") == 0 and "\\" not in found and "'" not in found
    if plain and not found.count('"') & 1:
        return end
    match = _METADATA.match(text)
    return 0 if match is None else match.end()


# Attributes and annotations of an instruction.
Described = tuple[Mapping[str, Attribute], Mapping[str, str]]


class Tail(NamedTuple):
    """Hold the parsed attribute list of an instruction, and the position behind it. The mappings
    are shared between instructions with the same text."""

    attributes: Mapping[str, Attribute]
    annotations: Mapping[str, str]
    end: int


class TailReader:
    """Read the tails of one source; they may only name computations that are defined already.

    ``inline`` parses a computation that is written in place of its name, adds it, and returns its
    name.
    """

    def __init__(
        self, source: Source, computations: Mapping[str, object], inline: Callable[[int], str]
    ) -> None:
        self._source, self._computations, self._inline = source, computations, inline
        self._inlined = 0
        self._values: dict[str, Attribute] = {}
        self.known: dict[str, Described] = {"": ({}, {})}  # by the rest of a line
        self._lines: dict[tuple[str, str], Described] = {}  # the same without metadata

    def line(self, start: int, text: str) -> Described:
        """Return the attributes and annotations of a tail that is the rest of a line; raise
        KeyError if it goes on in the next line."""
        before, found, behind = text.partition(", metadata=")
        end = _metadata_end(behind) if found else 0
        key = (before, behind[end:]) if end else (text, _NO_METADATA)
        known = self._lines.get(key)
        if known is None:
            return self._first(start, text, key, behind[:end])
        if end:
            # What is cached has the metadata of the first such line: often that alone.
            annotations = {"metadata": behind[:end]}
            known = known[0], {**known[1], **annotations} if len(known[1]) > 1 else annotations
        self.known[text] = known
        return known

    def _first(self, start: int, text: str, key: tuple[str, str], metadata: str) -> Described:
        if text.rstrip().endswith("="):
            raise KeyError(text)  # the line below says whether that is the end
        again = self._of_known(key, metadata)
        if again is not None:
            self._lines[key] = self.known[text] = again
            return again
        inlined = self._inlined
        tail = self.read(start)
        if tail.end != start + len(text.rstrip()):
            raise KeyError(text)
        found = tail.attributes, tail.annotations
        if inlined < self._inlined:
            return found  # each has computations of its own
        if not metadata or tail.annotations.get("metadata") == metadata:
            self._lines[key] = found
        self.known[text] = found
        return found

    def _of_known(self, key: tuple[str, str], metadata: str) -> Described | None:
        """Assemble a tail from attributes parsed before; None if one of them is new."""
        values = self._values
        before, behind = key
        pieces = before.split(", ")[1:]
        if behind.strip(_NO_METADATA) or not pieces or not all(map(values.__contains__, pieces)):
            return None
        attributes = {piece.partition("=")[0]: values[piece] for piece in pieces}
        # A name that is given twice is an error, which read() reports.
        if before[:2] != ", " or len(attributes) < len(pieces):
            return None
        return attributes, {"metadata": metadata} if metadata else {}

    def header(self, position: int, read: Callable[[str, str, str], V]) -> tuple[dict[str, V], int]:
        """Read a header's attributes at a position; return them, and the position behind them.

        ``read`` takes a name and its value's text, without and with comments, and may raise
        ValueError.
        """
        found: dict[str, V] = {}
        while match := _ATTRIBUTE.match(self._source.code, position):
            if match[1] in found:
                self._source.fail(f"attribute {match[1]!r} is given twice", match.start(1))
            position = self._value_end(match.end())
            where = slice(match.end(), position)
            try:
                value = read(match[1], self._source.code[where], self._source.text[where])
            except ValueError as error:
                self._source.fail(str(error), match.start(1))
            found[match[1]] = value
        return found, position

    def read(self, position: int) -> Tail:
        """Read the tail at a position."""
        source = self._source
        attributes: dict[str, Attribute] = {}
        annotations: dict[str, str] = {}
        while match := _ATTRIBUTE.match(source.code, position):
            name = match[1]
            start, position = match.end(), self._value_end(match.end())
            if name in attributes or name in annotations:
                source.fail(f"attribute {name!r} is given twice", match.start(1))
            if start == position and name != "padding":  # that of a scalar is empty
                source.fail(f"expected a value of {name}", match.end(1) + 1)
            if name in ANNOTATIONS:
                annotations[name] = source.text[start:position]
            else:
                attributes[name] = self._attribute(name, match.start(1), start, position)
        return Tail(attributes, annotations, position)

    def _attribute(self, name: str, key: int, start: int, end: int) -> Attribute:
        text = self._source.code[key:end]
        value = self._values.get(text)
        if value is None:
            if name in COMPUTATION_ATTRIBUTES and "=" in self._source.code[start:end]:
                return self._bodies(name, start, end)
            if name in _REMOVED:
                self._source.fail(f"{name}: {_REMOVED[name]}", key)
            if name not in CODECS:
                hint = suggestion(name, CODECS)
                self._source.fail(f"unexpected attribute {name!r}{hint}", key)
            value = self._decoded(name, self._source.code[start:end], start)
            if name in COMPUTATION_ATTRIBUTES:
                self._exist(value, start)
            self._values[text] = value
        return value

    def _bodies(self, name: str, start: int, end: int) -> Attribute:
        """Read computations that are written in place of their names; return the names they got."""
        code = self._source.code
        self._inlined += 1
        if name not in _LISTS:
            if not code.startswith("{", start):
                self._source.fail(f"{name}: expected a computation", start)
            return self._inline(start)
        names = []
        for first, last in parts(code, start + 1, end - 1):
            if code.startswith("{", first):
                names.append(self._inline(first))
            else:
                found = self._decoded(name, f"{{{code[first:last]}}}", first)
                self._exist(found, first)
                names += found
        return tuple(names)

    def _decoded(self, name: str, text: str, position: int) -> Any:
        try:
            return CODECS[name].read(text)
        except ValueError as error:
            self._source.fail(f"{name}: {error}", position)

    def _exist(self, value: Attribute, position: int) -> None:
        """Raise ParseError for a callee that is not defined above."""
        for name in (value,) if isinstance(value, str) else value:  # type: ignore[union-attr]
            if name not in self._computations:
                hint = suggestion(str(name), self._computations)
                self._source.fail(f"computation {name!r} is not defined above{hint}", position)

    def _value_end(self, position: int) -> int:
        """Return where a value (words, strings, brackets) ends: at a comma or white space."""
        code = self._source.code
        if simple := _SIMPLE.match(code, position):
            return simple.end()
        if code.startswith("{", position):
            return self._source.closing(position) + 1
        while position < len(code):
            character = code[position]
            if character in "({[":
                position = self._source.closing(position) + 1
            elif match := next(filter(None, (p.match(code, position) for p in _IN_VALUE)), None):
                position = match.end()
            elif character in "\"'":
                self._source.fail("nothing closes this string", position)
            else:
                break
        return position
