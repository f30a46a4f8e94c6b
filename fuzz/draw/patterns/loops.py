"""Generate loops with trip counts that a compiler can know, or cannot."""

from __future__ import annotations

from dataclasses import dataclass

from fuzz.draw.builder import Builder
from fuzz.draw.generators.control import unwrapped
from fuzz.draw.patterns.pattern import Pattern, Patterns, applied, changed
from hlo.types import ELEMENT_TYPES, PRED, ArrayShape

_COUNTERS = tuple(ELEMENT_TYPES[name] for name in ("s32", "s64", "u32", "s8", "u8", "u64", "s16"))
_MOST_TURNS = 5


@dataclass(frozen=True, slots=True)
class Count:
    """Hold how a loop counts: from ``first`` in steps of ``step`` while ``counter direction
    limit``; if ``swapped``, the comparison is written with the limit first."""

    counter: ArrayShape
    first: int
    step: int
    limit: int
    direction: str
    swapped: bool


_SWAPPED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "NE": "NE"}


def _count(builder: Builder) -> Count:
    """Draw a loop of few trips, perhaps none: up or down, to the limit or past it."""
    counter = ArrayShape(builder.choice(_COUNTERS))
    turns, step = builder.integer(0, _MOST_TURNS), builder.integer(1, 3)
    is_down = counter.element_type.kind == "signed" and builder.boolean()
    direction = builder.choice(("LT", "LE", "NE"))
    first = builder.integer(0, 3)
    last = first + turns * step
    if direction != "NE":
        last -= builder.integer(0, step - 1) if turns else 0
    limit = last - (direction == "LE")
    if counter.element_type.kind == "unsigned":
        limit = max(0, limit)
    if is_down:
        first, step, limit = -first, -step, -limit
        direction = {"LT": "GT", "LE": "GE", "NE": "NE"}[direction]
    swapped = builder.boolean()
    return Count(
        counter, first, step, limit, _SWAPPED[direction] if swapped else direction, swapped
    )


def _condition(inner: Builder, count: Count, counter: str, limit: str) -> str:
    sides = (limit, counter) if count.swapped else (counter, limit)
    return inner.emit("compare", ArrayShape(PRED), *sides, direction=count.direction)


def _looped(builder: Builder, shape: ArrayShape, count: Count, limit: str | None) -> str:
    """Draw a loop over a counter, a value, an invariant, and the limit if it is given."""
    parts = [builder.number(count.counter, count.first), builder.value(shape), builder.value(shape)]
    init = builder.tuple(*parts, *([] if limit is None else [limit]))
    state = builder.shape(init)
    is_alive = builder.boolean()  # what stays is read

    def condition(inner: Builder, names: list[str]) -> str:
        counter = unwrapped(inner, names[0], [0])
        given = (
            unwrapped(inner, names[0], [3]) if limit else inner.number(count.counter, count.limit)
        )
        return _condition(inner, count, counter, given)

    def body(inner: Builder, names: list[str]) -> str:
        counter, value, same = (unwrapped(inner, names[0], [n]) for n in range(3))
        other = same if is_alive else value
        value = applied(inner, shape, *inner.permutation((value, other)))
        step = inner.number(count.counter, abs(count.step))
        opcode = "add" if count.step > 0 else "subtract"
        following = inner.emit(opcode, count.counter, counter, step)
        rest = [] if limit is None else [unwrapped(inner, names[0], [3])]
        return inner.tuple(following, changed(inner, shape, value), same, *rest)

    called = {
        name: builder.computation([state], of)
        for name, of in (("condition", condition), ("body", body))
    }
    loop = builder.emit("while", state, init, **called)
    return unwrapped(builder, loop, [builder.choice((1, 1, 2))])


def counted(builder: Builder, shape: ArrayShape) -> str:
    """Draw a loop between constants, whose trip count can be computed for all types and
    directions."""
    return _looped(builder, shape, _count(builder), None)


def bounded_by_a_value(builder: Builder, shape: ArrayShape) -> str:
    """Draw a loop to a limit that depends on arguments, at most a few trips away."""
    count = _count(builder)
    direction = _SWAPPED[count.direction] if count.swapped else count.direction
    if direction == "NE":  # it may never be met
        direction = "LT" if count.step > 0 else "GT"
    low, high = sorted((count.first, count.limit))
    bounds = [builder.number(count.counter, n) for n in (low, high)]
    given = builder.value(count.counter)
    limit = builder.emit("clamp", count.counter, bounds[0], given, bounds[1])
    swapped = _SWAPPED[direction] if count.swapped else direction
    known = Count(count.counter, count.first, count.step, count.limit, swapped, count.swapped)
    return _looped(builder, shape, known, limit)


_USED = ("add", "compare", "subtract", "while")

PATTERNS: Patterns = {
    "loop of known turns": Pattern(counted, _USED[:2] + _USED[3:]),
    "loop of unknown turns": Pattern(bounded_by_a_value, ("add", "clamp", "compare", "while")),
}
