"""Generate asynchronous computations that produce a value of a given shape."""

from __future__ import annotations

from collections.abc import Mapping

from fuzz.draw.builder import Builder, Generator
from fuzz.draw.generators.control import computed
from fuzz.draw.shapes import Accepts
from hlo.aliasing import Alias
from hlo.attributes import Attribute
from hlo.types import PRED, S32, U32, ArrayShape, TupleShape

_MOST_UPDATES = 2
_LATE = 4  # once in so many: jaxlib 0.10 does not take it yet


def _one_instruction(inner: Builder, names: list[str], shape: ArrayShape) -> str:
    """Draw a copy, or a call of any computation: on the main thread XLA starts single instructions
    only."""
    if inner.integer(0, 3) == 0:
        return inner.emit("copy", shape, names[0])
    parameters = list(map(inner.shape, names))
    to_apply = inner.computation(parameters, lambda within, _: computed(within, shape))
    return inner.emit("call", shape, *names, to_apply=to_apply)


def _started(builder: Builder, shape: ArrayShape) -> tuple[str, str]:
    """Draw an async-start; return its name, and that of its computation."""
    names = [builder.value(shape) for _ in range(builder.integer(1, 2))]
    contexts = builder.several(lambda: builder.choice((S32, U32)), 0, 2)
    operands = tuple(map(builder.shape, names))
    calls = builder.computation(operands, lambda i, given: _one_instruction(i, given, shape))
    state = TupleShape((TupleShape(operands), shape, *map(ArrayShape, contexts)))
    # The state is ((operands…), result, contexts…): {0, 0} in it is the first operand.
    given = {**_thread(builder), **_in_place(builder, Alias((0, 0), 0, ()))}
    return builder.emit("async-start", state, *names, calls=calls, **given), calls


def _in_place(builder: Builder, alias: Alias) -> dict[str, Attribute]:
    """Draw an alias of the operands in the state."""
    return {"output_to_operand_aliasing": (alias,)} if builder.boolean() else {}


def _thread(builder: Builder) -> dict[str, str]:
    """Draw whether to name the default execution thread."""
    return {"async_execution_thread": "main"} if builder.boolean() else {}


def _again(builder: Builder, calls: str) -> dict[str, str]:
    """Draw optional attributes of an async-update or -done, which repeat those of the start."""
    return {**({"calls": calls} if builder.boolean() else {}), **_thread(builder)}


def _asynchronous(least_updates: int) -> Generator:
    def generator(builder: Builder, shape: ArrayShape) -> str:
        if builder.chance(_LATE):
            return _late(builder, shape)
        name, calls = _started(builder, shape)
        for _ in range(builder.integer(least_updates, _MOST_UPDATES)):
            given = {**_again(builder, calls), **_in_place(builder, Alias((0, 0), 0, (0, 0)))}
            name = builder.emit("async-update", builder.shape(name), name, **given)
        return builder.emit("async-done", shape, name, **_again(builder, calls))

    return generator


def _late(builder: Builder, shape: ArrayShape) -> str:
    """Draw an async call whose operands and result are added by updates, perhaps on another thread,
    with its state passed through tuples, barriers or loops."""
    names = [builder.value(shape) for _ in range(builder.integer(1, 3))]
    shapes = tuple(map(builder.shape, names))
    contexts = builder.several(lambda: ArrayShape(builder.choice((S32, U32))), 0, 2)
    thread = {"async_execution_thread": "other"} if builder.boolean() else {}
    body = _several_instructions if thread else _one_instruction
    calls = builder.computation(shapes, lambda i, given: body(i, given, shape))

    def state(bound: int, has_result: bool) -> TupleShape:
        result = shape if has_result else TupleShape(())
        return TupleShape((TupleShape(shapes[:bound]), result, *contexts))

    count, has_result = builder.integer(0, len(names)), builder.boolean()
    name = builder.emit(
        "async-start", state(count, has_result), *names[:count], calls=calls, **thread
    )
    while count < len(names) or not has_result:
        name, before = _handed_on(builder, name, calls, thread), count
        # A turn that adds nothing to the state is legal, too; the last one adds all.
        count = builder.choice((count, len(names), len(names)))
        has_result = has_result or builder.integer(0, 2) > 0
        given = {"calls": calls, **thread}
        name = builder.emit(
            "async-update", state(count, has_result), name, *names[before:count], **given
        )
    name = _handed_on(builder, name, calls, thread)
    return builder.emit("async-done", shape, name, calls=calls, **thread)


def _several_instructions(inner: Builder, names: list[str], shape: ArrayShape) -> str:
    """Draw a computation of any length, as another thread may run."""
    mask = inner.value(ArrayShape(PRED, shape.dims))
    return inner.emit("select", shape, mask, names[0], computed(inner, shape))


def _handed_on(builder: Builder, name: str, calls: str, thread: Mapping[str, str]) -> str:
    """Pass a state on: directly, in a tuple, through a barrier, or around a loop."""
    how = builder.integer(0, 4)
    if how < 2:
        return name
    counter = builder.number(ArrayShape(S32), 0)
    state = builder.tuple(counter, name)
    shape = builder.shape(name)
    if how == 3:
        state = builder.emit("opt-barrier", builder.shape(state), state)
    if how == 4:
        state = _around_a_loop(builder, state, calls, thread)
    return builder.emit("get-tuple-element", shape, state, index=1)


def _around_a_loop(builder: Builder, state: str, calls: str, thread: Mapping[str, str]) -> str:
    """Draw a loop of a few trips that carries a counter and a state, which its body may update."""
    turns, shape = builder.integer(0, 2), builder.shape(state)
    assert isinstance(shape, TupleShape)
    counter, under_way = shape.elements
    updates = builder.boolean()

    def condition(inner: Builder, names: list[str]) -> str:
        count = inner.emit("get-tuple-element", counter, names[0], index=0)
        limit = inner.number(ArrayShape(S32), turns)
        return inner.emit("compare", ArrayShape(PRED), count, limit, direction="LT")

    def body(inner: Builder, names: list[str]) -> str:
        count = inner.emit("get-tuple-element", counter, names[0], index=0)
        following = inner.emit("add", counter, count, inner.number(ArrayShape(S32), 1))
        name = inner.emit("get-tuple-element", under_way, names[0], index=1)
        if updates:
            name = inner.emit("async-update", under_way, name, calls=calls, **thread)
        return inner.tuple(following, name)

    return builder.emit(
        "while",
        shape,
        state,
        condition=builder.computation([shape], condition),
        body=builder.computation([shape], body),
    )


GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    "async-done": (_asynchronous(0), lambda shape: True),
    "async-start": (_asynchronous(0), lambda shape: True),
    "async-update": (_asynchronous(1), lambda shape: True),
}
