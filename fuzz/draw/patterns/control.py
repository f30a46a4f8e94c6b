"""Generate loops and branches for loop and branch optimisations."""

from __future__ import annotations

from fuzz.draw.builder import Builder
from fuzz.draw.generators.control import loop, unwrapped
from fuzz.draw.patterns.pattern import Pattern, Patterns, applied, changed, ranked
from hlo.types import PRED, S32, ArrayShape

_COUNT = ArrayShape(S32)


def scanned(builder: Builder, shape: ArrayShape) -> str:
    """Draw a ``while`` over the first dimension, with about as many trips as it is long: each reads
    a slice, combines it with a loop-invariant value, and writes the result back."""
    row = ArrayShape(shape.element_type, (1, *shape.dims[1:]))
    turns = max(0, min(6, shape.dims[0] + builder.integer(-1, 1)))
    start, step = builder.integer(-1, 1), builder.integer(1, 2)
    parts = [builder.number(_COUNT, start), builder.value(shape), builder.value(shape)]
    init = builder.tuple(*parts, builder.value(row))

    def condition(inner: Builder, names: list[str]) -> str:
        limit = inner.number(_COUNT, start + turns * step)
        count = unwrapped(inner, names[0], [0])
        return inner.emit("compare", ArrayShape(PRED), count, limit, direction="LT")

    def body(inner: Builder, names: list[str]) -> str:
        count, source, target, same = (unwrapped(inner, names[0], [n]) for n in range(4))
        places = [count, *(inner.number(_COUNT, 0) for _ in shape.dims[1:])]
        read = inner.emit("dynamic-slice", row, source, *places, dynamic_slice_sizes=row.dims)
        done = applied(inner, row, read, changed(inner, row, same))
        written = inner.emit("dynamic-update-slice", shape, target, done, *places)
        following = inner.emit("add", _COUNT, count, inner.number(_COUNT, step))
        return inner.tuple(following, source, written, same)

    return unwrapped(builder, loop(builder, init, condition, body), [2])


def branches_alike(builder: Builder, shape: ArrayShape) -> str:
    """Draw a ``conditional``, on a value or a constant, between two nearly equal computations."""
    predicate = ArrayShape(PRED)
    selector = builder.value(predicate) if builder.boolean() else builder.constant(predicate)
    operand = builder.value(shape)

    def branch(inner: Builder, names: list[str]) -> str:
        return changed(inner, shape, names[0])

    first = builder.computation([shape], branch)
    second = builder.computation([shape], branch) if builder.boolean() else first
    return builder.emit(
        "conditional", shape, selector, operand, operand,
        true_computation=first, false_computation=second,
    )  # fmt: skip


def called_twice(builder: Builder, shape: ArrayShape) -> str:
    """Draw one computation called on two values."""

    def result(inner: Builder, names: list[str]) -> str:
        return changed(inner, shape, applied(inner, shape, *names))

    callee = builder.computation([shape, shape], result)
    one, other = builder.value(shape), builder.value(shape)
    first = builder.emit("call", shape, one, other, to_apply=callee)
    return builder.emit("call", shape, *builder.permutation((first, one)), to_apply=callee)


PATTERNS: Patterns = {
    "scanned": Pattern(
        scanned,
        ("add", "compare", "dynamic-slice", "dynamic-update-slice", "while"),
        lambda shape: ranked(shape) and shape.dims[0] > 0,
    ),
    "branches alike": Pattern(branches_alike, ("conditional",)),
    "called twice": Pattern(called_twice, ("call",)),
}
