"""Generate loops with trip counts that a compiler can know, or cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fuzz.draw.builder import Builder
from fuzz.draw.generators.control import loop, unwrapped
from fuzz.draw.generators.elementwise import ALIKE
from fuzz.draw.patterns.pattern import Pattern, Patterns, applied, changed
from hlo.types import ELEMENT_TYPES, F64, PRED, S32, ArrayShape

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


def counting(builder: Builder, turns: int, step: int) -> Count:
    """Draw how a loop counts its trips: up or down, to the limit or past it."""
    counter = ArrayShape(builder.choice([t for t in _COUNTERS if t in builder.types] or [S32]))
    may_sink = counter.element_type.kind == "signed" and "subtract" in builder.opcodes
    is_down = may_sink and builder.boolean()
    direction = builder.choice(("LT", "LE", "NE"))
    first = builder.integer(0, 3)
    last = first + turns * step
    # NE ends a loop at the very limit alone.
    if direction != "NE":
        last -= builder.integer(0, step - 1) if turns else 0
    limit = last - (direction == "LE")
    # LE with no trips from 0 would need -1; with 0 there is one trip.
    if counter.element_type.kind == "unsigned":
        limit = max(0, limit)
    if is_down:
        first, step, limit = -first, -step, -limit
        direction = {"LT": "GT", "LE": "GE", "NE": "NE"}[direction]
    swapped = builder.boolean()
    return Count(
        counter, first, step, limit, _SWAPPED[direction] if swapped else direction, swapped
    )


def _count(builder: Builder) -> Count:
    """Draw a loop of few trips, perhaps none."""
    return counting(builder, builder.integer(0, _MOST_TURNS), builder.integer(1, 3))


def goes_on(inner: Builder, count: Count, counter: str, limit: str) -> str:
    """Compare the counter with the limit."""
    sides = (limit, counter) if count.swapped else (counter, limit)
    return inner.emit("compare", ArrayShape(PRED), *sides, direction=count.direction)


def stepped(inner: Builder, count: Count, counter: str) -> str:
    """Count one trip."""
    step = inner.number(count.counter, abs(count.step))
    return inner.emit("add" if count.step > 0 else "subtract", count.counter, counter, step)


def _looped(builder: Builder, shape: ArrayShape, count: Count, limit: str | None) -> str:
    """Draw a loop over a counter, a value, an invariant, and the limit if it is given."""
    parts = [builder.number(count.counter, count.first), builder.value(shape), builder.value(shape)]
    init = builder.tuple(*parts, *([] if limit is None else [limit]))
    is_alive = builder.boolean()  # what stays is read

    def condition(inner: Builder, names: list[str]) -> str:
        counter = unwrapped(inner, names[0], [0])
        given = (
            unwrapped(inner, names[0], [3]) if limit else inner.number(count.counter, count.limit)
        )
        return goes_on(inner, count, counter, given)

    def body(inner: Builder, names: list[str]) -> str:
        counter, value, same = (unwrapped(inner, names[0], [n]) for n in range(3))
        other = same if is_alive else value
        value = applied(inner, shape, *inner.permutation((value, other)))
        following = stepped(inner, count, counter)
        rest = [] if limit is None else [unwrapped(inner, names[0], [3])]
        return inner.tuple(following, changed(inner, shape, value), same, *rest)

    whole = loop(builder, init, condition, body)
    return unwrapped(builder, whole, [builder.choice((1, 1, 2))])


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


# Elements from which on a `while` of maps becomes one loop over elements, and some beside it.
_LARGE = (255, 256, 257, 320, 512)
_ELEMENTARY = ("cosine", "exponential", "log", "power", "sine", "tanh", "tan", "cbrt", "atan2")
_TABLE = 8  # elements


def exchanged(builder: Builder, shape: ArrayShape) -> str:
    """Draw a loop over the elements of a few long arrays, each computed from its own past alone, by
    elementary functions or a table; its trips rotate the arrays."""
    # The functions of f64 are long: compilers call them where they copy others.
    is_double = F64 in builder.types and builder.boolean()
    element_type = F64 if is_double else shape.element_type
    is_long = shape.elements > _LARGE[0]
    large = ArrayShape(element_type, shape.dims if is_long else (builder.choice(_LARGE),))
    count = Count(ArrayShape(S32), 0, 1, builder.integer(1, 3), "LT", swapped=False)
    values = [builder.value(large) for _ in range(builder.integer(2, 3))]
    init = builder.tuple(builder.number(count.counter, count.first), *values)

    def condition(inner: Builder, names: list[str]) -> str:
        counter = unwrapped(inner, names[0], [0])
        return goes_on(inner, count, counter, inner.number(count.counter, count.limit))

    def body(inner: Builder, names: list[str]) -> str:
        counter, *old = (unwrapped(inner, names[0], [n]) for n in range(1 + len(values)))
        following = stepped(inner, count, counter)
        new = [*old[1:], old[0]]
        for place in sorted({inner.integer(0, len(old) - 1) for _ in range(2)}):
            new[place] = _exchange(inner, large, old)
        return inner.tuple(following, *new)

    whole = loop(builder, init, condition, body)
    name = unwrapped(builder, whole, [builder.integer(1, len(values))])
    if not is_long:
        flat = ArrayShape(element_type, (shape.elements,))
        name = builder.emit("slice", flat, name, slice=((0, shape.elements, 1),))
        name = builder.emit("reshape", ArrayShape(element_type, shape.dims), name)
    same = element_type is shape.element_type
    return name if same else builder.emit("convert", shape, name)


def _exchange(inner: Builder, shape: ArrayShape, old: Sequence[str]) -> str:
    """Draw a step: one array's elementary function, or elements of a table, combined with
    another array."""
    source, other = inner.permutation(old)[:2]
    able = [
        opcode
        for opcode in _ELEMENTARY
        if opcode in inner.opcodes and ALIKE[opcode][0](shape.element_type)
    ]
    if able and inner.boolean():
        opcode = inner.choice(able)
        computed = inner.emit(opcode, shape, *[source] * ALIKE[opcode][1])
    else:
        computed = _looked_up(inner, shape, source)
    return applied(inner, shape, *inner.permutation((computed, other)))


def _looked_up(inner: Builder, shape: ArrayShape, source: str) -> str:
    """Look elements up in a table: those at the places that other elements are converted to."""
    table = inner.constant(ArrayShape(shape.element_type, (_TABLE,)))
    places = inner.emit("convert", ArrayShape(S32, shape.dims), source)
    return inner.emit(
        "gather", shape, table, places,
        offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,),
        index_vector_dim=shape.rank, slice_sizes=(1,),
    )  # fmt: skip


PATTERNS: Patterns = {
    "loop of known turns": Pattern(counted, ("add", "compare", "while")),
    "loop of unknown turns": Pattern(bounded_by_a_value, ("add", "clamp", "compare", "while")),
    "loop of exchanged elements": Pattern(
        exchanged, ("add", "compare", "convert", "gather", "reshape", "slice", "while")
    ),
}
