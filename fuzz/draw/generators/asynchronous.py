"""Computations that are started and done later, around values of the shape that is asked for."""

from __future__ import annotations

from fuzz.draw.builder import Builder, Generator
from fuzz.draw.generators.control import computed
from fuzz.draw.shapes import Accepts
from hlo.aliasing import Alias
from hlo.attributes import Attribute
from hlo.types import S32, U32, ArrayShape, TupleShape

_MOST_UPDATES = 2


def _one_instruction(inner: Builder, names: list[str], shape: ArrayShape) -> str:
    """A copy, or the call of any computation: XLA starts nothing longer on the main thread."""
    if inner.integer(0, 3) == 0:
        return inner.emit("copy", shape, names[0])
    parameters = list(map(inner.shape, names))
    to_apply = inner.computation(parameters, lambda within, _: computed(within, shape))
    return inner.emit("call", shape, *names, to_apply=to_apply)


def _started(builder: Builder, shape: ArrayShape) -> tuple[str, str]:
    """The name of what is started, and of the computation."""
    names = [builder.value(shape) for _ in range(builder.integer(1, 2))]
    contexts = builder.several(lambda: builder.choice((S32, U32)), 0, 2)
    operands = tuple(map(builder.shape, names))
    calls = builder.computation(operands, lambda i, given: _one_instruction(i, given, shape))
    state = TupleShape((TupleShape(operands), shape, *map(ArrayShape, contexts)))
    given = {**_thread(builder), **_in_place(builder, Alias((0, 0), 0, ()))}
    return builder.emit("async-start", state, *names, calls=calls, **given), calls


def _in_place(builder: Builder, alias: Alias) -> dict[str, Attribute]:
    """The state holds the operands where they are."""
    return {"output_to_operand_aliasing": (alias,)} if builder.boolean() else {}


def _thread(builder: Builder) -> dict[str, str]:
    """The one that it is on if nothing is said."""
    return {"async_execution_thread": "main"} if builder.boolean() else {}


def _again(builder: Builder, calls: str) -> dict[str, str]:
    """Insert an async-update, which passes on what was started."""
    return {**({"calls": calls} if builder.boolean() else {}), **_thread(builder)}


def _asynchronous(least_updates: int) -> Generator:
    def generator(builder: Builder, shape: ArrayShape) -> str:
        name, calls = _started(builder, shape)
        for _ in range(builder.integer(least_updates, _MOST_UPDATES)):
            given = {**_again(builder, calls), **_in_place(builder, Alias((0, 0), 0, (0, 0)))}
            name = builder.emit("async-update", builder.shape(name), name, **given)
        return builder.emit("async-done", shape, name, **_again(builder, calls))

    return generator


GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    "async-done": (_asynchronous(0), lambda shape: True),
    "async-start": (_asynchronous(0), lambda shape: True),
    "async-update": (_asynchronous(1), lambda shape: True),
}
