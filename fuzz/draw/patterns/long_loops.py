"""Generate loops of many trips with long bodies, as simulations and solvers have."""

from __future__ import annotations

from collections.abc import Sequence

from fuzz.draw.builder import Builder
from fuzz.draw.generators.control import loop, unwrapped
from fuzz.draw.generators.elementwise import ALIKE
from fuzz.draw.patterns.loops import counting, goes_on, stepped
from fuzz.draw.patterns.pattern import Pattern, Patterns, applied
from hlo.types import ArrayShape, ElementType

_FEWEST_TURNS, _MOST_TURNS = 8, 24
_MOST_STEP = 5
_FEWEST, _MOST = 8, 14  # instructions of a body
_MOST_WORK = 1 << 11  # elements of one value in all trips together
_ANY = 8  # one instruction in so many is any: exact elementary functions take long
_CHEAP = (
    *("add", "subtract", "multiply", "maximum", "minimum", "negate", "and", "or", "xor", "not"),
    *("shift-left", "shift-right-arithmetic", "shift-right-logical", "floor", "sign"),
)


def long_loop(builder: Builder, shape: ArrayShape) -> str:
    """Draw a loop over several values and others that stay, in any order; its counter is anywhere
    among them, counts up or down by any stride, and the body may read it and a second one."""
    most = min(_MOST_TURNS, _MOST_WORK // max(1, shape.elements))
    turns = builder.integer(_FEWEST_TURNS, most)
    count = counting(builder, turns, builder.integer(1, _MOST_STEP))
    own = ArrayShape(shape.element_type)
    second = builder.number(own, 0)
    values = [builder.value(shape) for _ in range(builder.integer(1, 3))]
    same = [builder.value(shape) for _ in range(builder.integer(0, 2))]
    parts = [builder.number(count.counter, count.first), second, *values, *same]
    order = builder.permutation(range(len(parts)))
    init = builder.tuple(*(parts[n] for n in order))

    def condition(inner: Builder, names: list[str]) -> str:
        counter = unwrapped(inner, names[0], [order.index(0)])
        return goes_on(inner, count, counter, inner.number(count.counter, count.limit))

    def body(inner: Builder, names: list[str]) -> str:
        old = [unwrapped(inner, names[0], [order.index(n)]) for n in range(len(parts))]
        other = inner.emit("add", own, old[1], inner.number(own, 1))
        read = inner.choice((old[1], other, inner.emit("convert", own, old[0])))
        spread = inner.emit("broadcast", shape, read, dimensions=())
        made = _steps(inner, shape, [*old[2:], spread])
        new = made[-len(values) :]
        following = [stepped(inner, count, old[0]), other, *new, *old[2 + len(values) :]]
        return inner.tuple(*(following[n] for n in order))

    whole = loop(builder, init, condition, body)
    return unwrapped(builder, whole, [order.index(builder.integer(2, 1 + len(values)))])


def _steps(inner: Builder, shape: ArrayShape, values: Sequence[str]) -> Sequence[str]:
    """Draw the instructions of a body, each on values before it; return what they compute."""
    known = [*values]
    for _ in range(inner.integer(_FEWEST, _MOST)):
        one, other = (inner.choice(known[-_FEWEST:]) for _ in range(2))
        known.append(_step(inner, shape, one, other))
    return known[len(values) :]


def _step(inner: Builder, shape: ArrayShape, one: str, other: str) -> str:
    if inner.chance(_ANY):
        return applied(inner, shape, *((one, other) if inner.boolean() else (one,)))
    able = [o for o in _CHEAP if o in inner.opcodes and ALIKE[o][0](shape.element_type)]
    opcode = inner.choice(able)
    return inner.emit(opcode, shape, *(one, other)[: ALIKE[opcode][1]])


def _is_arithmetic(element_type: ElementType) -> bool:
    return element_type.is_integer or element_type.is_inexact


PATTERNS: Patterns = {
    "long loop": Pattern(
        long_loop,
        ("add", "broadcast", "compare", "convert", "while"),
        lambda shape: (
            _is_arithmetic(shape.element_type) and shape.elements * _FEWEST_TURNS <= _MOST_WORK
        ),
    )
}
