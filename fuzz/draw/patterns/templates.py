"""Generate subgraphs from templates: ``divide(divide(a, b), c)`` is three values and two quotients.

A template is a nested application of opcodes to leaves. ``a`` to ``d`` are values of the shape that
is asked for, ``p`` and ``q`` preds of its dimensions; the same letter is the same value. ``k`` is a
constant, another one each time; numbers are constants, as are ``min`` and ``max`` (the ends of the
type), ``nan``, ``width`` (in bits) and ``true``. An integer -1 of an unsigned type is all ones.
``compare.LT`` compares in that direction, ``compare.?`` in any. The operands of a comparison have
the data type of the template, those of everything else the type of its result.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from fuzz.draw.builder import MOST_CONSTANT_ELEMENTS, Builder
from fuzz.draw.generators.elementwise import ALIKE, DIRECTIONS, Types
from hlo.literal import Literal
from hlo.types import PRED, ArrayShape, ElementType

_TOKEN = re.compile(r"[(),]|[^\s(),]++")
# Besides those on operands of the result's own type.
_TYPES: Mapping[str, Types] = {
    **{opcode: types for opcode, (types, _) in ALIKE.items()},
    "abs": lambda t: t.is_float or t.kind == "signed",
    "clamp": lambda t: not t.is_complex,
    "select": lambda t: True,
}
_LETTERS = frozenset("abcd")
_PREDS = frozenset("pq")
_ENDS = frozenset(["min", "max", "nan"])


@dataclass(frozen=True, slots=True)
class Node:
    """Hold an opcode (with the direction of a comparison) and its operands; a leaf has none."""

    name: str
    operands: tuple[Node, ...] = ()

    @property
    def opcode(self) -> str:
        return self.name.partition(".")[0]


@cache
def parsed(template: str) -> Node:
    """Parse a template."""
    tokens = _TOKEN.findall(template)
    node, rest = _node(tokens)
    assert not rest, template
    return node


def _node(tokens: Sequence[str]) -> tuple[Node, Sequence[str]]:
    name, rest = tokens[0], tokens[1:]
    if not rest or rest[0] != "(":
        return Node(name), rest
    operands = list[Node]()
    while rest[0] != ")":
        operand, rest = _node(rest[1:])
        operands.append(operand)
    return Node(name, tuple(operands)), rest[1:]


def opcodes(node: Node) -> Iterator[str]:
    """Yield the opcodes of a template."""
    if node.operands:
        yield node.opcode
    for operand in node.operands:
        yield from opcodes(operand)


@cache
def fits(template: str, result: ElementType, data: ElementType) -> bool:
    """Return whether a template is valid for a data type and a result type."""
    return _fits(parsed(template), result, data)


def _fits(node: Node, wanted: ElementType, data: ElementType) -> bool:
    if not node.operands:
        return _has_number(node.name, wanted)
    if node.opcode == "compare":
        is_ordered = not data.is_complex or node.name.endswith((".EQ", ".NE", ".?"))
        return is_ordered and all(_fits(operand, data, data) for operand in node.operands)
    if not _TYPES[node.opcode](wanted):
        return False
    types = [PRED if node.opcode == "select" else wanted, wanted, wanted]
    # Not strict: most opcodes have fewer than three operands.
    return all(_fits(operand, t, data) for operand, t in zip(node.operands, types, strict=False))


def _has_number(name: str, element_type: ElementType) -> bool:
    if name == "nan" or (name[-1].isdigit() and float(name) != int(float(name))):
        return element_type.is_float
    if name in _ENDS:
        return not element_type.is_complex
    return name != "width" or element_type.is_integer


@dataclass(slots=True)
class Drawing:
    """Draw one template with the data type of ``shape``."""

    builder: Builder
    shape: ArrayShape
    named: dict[str, str] = field(default_factory=dict)

    def value(self, node: Node, wanted: ArrayShape) -> str:
        """Draw a node of a template for a shape; return the name."""
        if not node.operands:
            return self._leaf(node.name, wanted)
        shapes = [wanted] * len(node.operands)
        attributes = dict[str, str]()
        if node.opcode == "compare":
            shapes = [self.shape, self.shape]
            attributes["direction"] = self._direction(node.name.partition(".")[2])
        elif node.opcode == "select":
            shapes[0] = ArrayShape(PRED, wanted.dims)
        pairs = zip(node.operands, shapes, strict=True)
        operands = [self.value(operand, shape) for operand, shape in pairs]
        return self.builder.emit(node.opcode, wanted, *operands, **attributes)

    def _direction(self, name: str) -> str:
        if name != "?":
            return name
        is_complex = self.shape.element_type.is_complex
        return self.builder.choice(DIRECTIONS[:2] if is_complex else DIRECTIONS)

    def _leaf(self, name: str, wanted: ArrayShape) -> str:
        if name in _LETTERS or name in _PREDS:
            if name not in self.named:
                self.named[name] = self.builder.value(wanted)
            return self.named[name]
        small, spreads = wanted.elements <= MOST_CONSTANT_ELEMENTS, _spreads(self.builder)
        # A constant would be too long a text, and there is no broadcast to spread one number.
        if not small and not spreads:
            return self.builder.value(wanted)
        is_whole = small and (not spreads or self.builder.boolean())
        whole = wanted if is_whole else ArrayShape(wanted.element_type)
        if name == "k":
            made = self.builder.constant(whole)
        else:
            made = self._constant(whole, number(name, wanted.element_type))
        if whole == wanted:
            return made
        return self.builder.emit("broadcast", wanted, made, dimensions=())

    def _constant(self, shape: ArrayShape, value: np.ndarray) -> str:
        whole = np.broadcast_to(value, shape.dims).copy()
        return self.builder.emit("constant", shape, literal=Literal(shape, whole))


def _spreads(builder: Builder) -> bool:
    return "broadcast" in builder.opcodes


def number(name: str, element_type: ElementType) -> np.ndarray:
    """Return the number that a template's word denotes in a type, as an array of rank 0."""
    if name == "true":
        return np.array(True).astype(element_type.numpy)
    if element_type.is_integer:
        return np.array(_integer(name, element_type)).astype(element_type.numpy)
    words = {"min": -math.inf, "max": math.inf, "nan": math.nan}
    with np.errstate(all="ignore"):
        value = words[name] if name in words else float(name)
        return np.array(value).astype(element_type.numpy)


def _integer(name: str, element_type: ElementType) -> int:
    is_signed = element_type.kind == "signed"
    low = -(2 ** (element_type.bits - 1)) if is_signed else 0
    high = 2 ** (element_type.bits - is_signed) - 1
    words = {"min": low, "max": high, "width": min(high, element_type.bits)}
    value = words[name] if name in words else int(float(name))
    return int(high if value < low else min(value, high))


def drawn(builder: Builder, shape: ArrayShape, templates: Sequence[str]) -> str:
    """Draw one of the templates that fit the shape's type and the menu's opcodes; a value if none
    does."""
    data = shape.element_type
    fitting = [t for t in templates if fits(t, data, data) and _is_possible(builder, t)]
    if not fitting:
        return builder.value(shape)
    return Drawing(builder, shape).value(parsed(builder.choice(fitting)), shape)


def _is_possible(builder: Builder, template: str) -> bool:
    return builder.opcodes >= _opcodes(template)


@cache
def _opcodes(template: str) -> frozenset[str]:
    return frozenset(opcodes(parsed(template)))


def predicated(builder: Builder, shape: ArrayShape, templates: Sequence[str]) -> str:
    """Draw a template that produces preds, from data of any type."""
    template = builder.choice([t for t in templates if _is_possible(builder, t)])
    data = builder.element_type(lambda t: fits(template, PRED, t))
    return Drawing(builder, ArrayShape(data, shape.dims)).value(parsed(template), shape)
