"""Rewrite a program to return values inside it, as a peer is asked for them.

Values of the entry become further results. A loop that stores a value at each trip is judged one
trip at a time, where an envelope of the whole loop says nothing: its state is extended by a counter
and a stack for each value. What it stores after the last expected trip overwrites one spare row: a
peer may leave a loop earlier or later than the exact evaluation. A conditional returns the values
of each of its branches, zeros for the branches that it did not take, and the number of the one that
it took.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.passes.choices import branches
from hlo.passes.rewriting import Names, with_entry
from hlo.types import S32, ArrayShape, Shape, TupleShape
from interp.envelope.value_names import (
    branch_name,
    inside_branch,
    inside_loop,
    states_name,
    trips_name,
)

MOST_TRIPS = 1 << 13
_MOST_BYTES = 1 << 26  # of the values of all trips
_RESULT = "with.anchors"
_INDEX = ArrayShape(S32)


def exposed(module: Module, names: Sequence[str], trips: Mapping[str, int] | None = None) -> Module:
    """Append values to the module's result tuple, in the order of ``names``
    (:mod:`interp.envelope.value_names`). ``trips`` has, by loop, how many trips are stored."""
    recording = _Recording(module, frozenset(names), trips or {})
    entry = module.entry
    made, found = recording.recorded(entry, "", Names(i.name for i in entry.instructions))
    values = {name: (instruction, shape) for name, instruction, shape in found}
    shown = [(entry.root, entry.root_instruction.shape), *(values[name] for name in names)]
    shape = TupleShape(tuple(shape for _, shape in shown))
    root = Instruction(_RESULT, shape, "tuple", tuple(name for name, _ in shown))
    whole = replace(entry, instructions=(*made, root), root=_RESULT)
    called = [c for c in recording.computations.values() if c.name != entry.name]
    return with_entry(replace(module, computations=(*called, entry)), whole)


def can_be_stored(shape: Shape, rows: int) -> bool:
    """Test for an array of static shape of which ``rows`` copies stay below the limit of memory."""
    return (
        isinstance(shape, ArrayShape)
        and shape.element_type.is_array
        and not any(shape.dynamic)
        and rows * shape.elements * shape.element_type.bits <= 8 * _MOST_BYTES
    )


def stored_elements(module: Module, loop: Instruction, rows: int) -> list[int]:
    """List the elements of a loop's state that are worth storing: floats that the body computes,
    but not those it passes on or changes by a dynamic-update-slice."""
    if not is_recordable(loop) or rows <= 0:
        return []
    return [
        number
        for number, part in enumerate(state_sources(module, loop))
        if part.opcode not in ("get-tuple-element", "dynamic-update-slice")
        and isinstance(part.shape, ArrayShape)
        and part.shape.element_type.is_inexact
        and can_be_stored(part.shape, rows)
    ]


def state_sources(module: Module, loop: Instruction) -> list[Instruction]:
    """Find the instructions that compute the elements of a loop body's result, in order; none if
    the body's root is not a tuple instruction."""
    body = module.computation(str(loop.attributes["body"]))
    made = {i.name: i for i in body.instructions}
    if body.root_instruction.opcode != "tuple":
        return []
    return [_source(made, made[name]) for name in body.root_instruction.operands]


def is_recordable(instruction: Instruction) -> bool:
    """Test for a loop whose state is a flat tuple, which can be extended, or a conditional. Nested
    tuples in a loop's state belong to asynchronous operations, which may only be handed on."""
    if instruction.opcode != "while":
        return instruction.opcode == "conditional"
    shape = instruction.shape
    if not isinstance(shape, TupleShape):
        return False
    return not any(isinstance(part, TupleShape) for part in shape.elements)


def element(name: str, shape: Shape, tuple_: str, number: int) -> Instruction:
    """Make a get-tuple-element."""
    return Instruction(name, shape, "get-tuple-element", (tuple_,), {"index": number})


class _Recorded(NamedTuple):
    """A wanted value, and the instruction that has it in the computation that is being rebuilt."""

    name: str
    instruction: str
    shape: Shape


class _Recording:
    """The rewriting of one module: rebuilds computations so that they also return the wanted
    values."""

    def __init__(self, module: Module, wanted: frozenset[str], trips: Mapping[str, int]) -> None:
        self._module, self._wanted, self._trips = module, wanted, trips
        self.computations = {c.name: c for c in module.computations}
        self._names = Names(self.computations)

    def recorded(
        self, computation: Computation, path: str, names: Names
    ) -> tuple[list[Instruction], list[_Recorded]]:
        """Rebuild a computation's instructions; return them, and the wanted values that they
        compute."""
        made: list[Instruction] = []
        found: list[_Recorded] = []
        for instruction in computation.instructions:
            name = path + instruction.name
            if is_recordable(instruction) and self._is_wanted(name):
                is_loop = instruction.opcode == "while"
                record = self._loop if is_loop else self._conditional
                found += record(instruction, name, _Body(made, names))
            else:
                made.append(instruction)
            if name in self._wanted:
                found.append(_Recorded(name, instruction.name, instruction.shape))
        return made, found

    def _is_wanted(self, name: str) -> bool:
        """Test whether a value inside of a loop or conditional, its state, trip count or branch is
        wanted."""
        parts = (inside_loop(name), f"{name}#", f"{name}:states:")
        whole = self._wanted.intersection((trips_name(name), branch_name(name)))
        return bool(whole) or any(wanted.startswith(parts) for wanted in self._wanted)

    def _add(self, computation: Computation, made: Sequence[Instruction], root: str) -> str:
        """Add a rebuilt computation to the module under a fresh name; return the name."""
        name = self._names.fresh(f"{computation.name}.recorded")
        rebuilt = replace(computation, name=name, instructions=tuple(made), root=root)
        self.computations[name] = rebuilt
        return name

    def _loop(self, loop: Instruction, name: str, out: _Body) -> list[_Recorded]:
        """Rebuild a loop with a longer state: a counter, and a stack of rows for each wanted
        value."""
        assert isinstance(loop.shape, TupleShape)
        # dynamic-update-slice clamps its start, so trips beyond the expected ones overwrite only
        # the one row more.
        own, rows = loop.shape.elements, self._trips[name] + 1
        body = self._module.computation(str(loop.attributes["body"]))
        names = Names(i.name for i in body.instructions)
        made, found = self.recorded(body, inside_loop(name), names)
        inner = _Body(made, names)
        results = [inner.element(body.root, shape, n) for n, shape in enumerate(own)]
        states = (_Recorded(states_name(name, n), x, own[n]) for n, x in enumerate(results))
        found += [x for x in states if x.name in self._wanted]
        stacks = [_stack(x.shape, rows) for x in found]
        shape = TupleShape((*own, _INDEX, *stacks))
        root = inner.storing(shape, results, found)
        called = {
            "condition": self._condition(loop, shape),
            "body": self._add(body, inner.made, root),
        }
        starts = [out.element(loop.operands[0], x, n) for n, x in enumerate(own)]
        starts += [out.integer(0), *map(out.zeros, stacks)]
        attributes = {**loop.attributes, **called}
        whole = out.add("while", shape, (out.tuple_(starts),), attributes)
        parts = [out.element(whole, x, n) for n, x in enumerate(shape.elements)]
        # Under the loop's name stands what its users read: its state without the counter and the
        # stacks.
        out.made.append(Instruction(loop.name, loop.shape, "tuple", tuple(parts[: len(own)])))
        trips = _Recorded(trips_name(name), parts[len(own)], _INDEX)
        rest = zip(found, parts[len(own) + 1 :], stacks, strict=True)
        return [trips, *(_Recorded(x.name, part, stack) for x, part, stack in rest)]

    def _condition(self, loop: Instruction, shape: TupleShape) -> str:
        """Build a condition that applies the loop's own one to the front of the extended state."""
        given = self._module.computation(str(loop.attributes["condition"]))
        body = _Body(list(given.instructions), Names(i.name for i in given.instructions))
        body.open_parameter(shape, loop.shape)
        return self._add(given, body.made, given.root)

    def _conditional(self, conditional: Instruction, name: str, out: _Body) -> list[_Recorded]:
        """Rebuild a conditional whose branches return the wanted values of all branches."""
        shape = conditional.shape
        own = shape.elements if isinstance(shape, TupleShape) else (shape,)
        inner: list[tuple[Computation, _Body, list[_Recorded]]] = []
        for number, branch in enumerate(map(self._module.computation, branches(conditional))):
            names = Names(i.name for i in branch.instructions)
            made, found = self.recorded(branch, inside_branch(name, number), names)
            inner.append((branch, _Body(made, names), found))
        every = [x for _, _, found in inner for x in found]
        whole_shape = TupleShape((*own, _INDEX, *(x.shape for x in every)))
        called = []
        for number, (branch, body, found) in enumerate(inner):
            results = [branch.root]
            if isinstance(shape, TupleShape):
                results = [body.element(branch.root, x, n) for n, x in enumerate(own)]
            results.append(body.integer(number))
            # Branches must agree in their result's shape, so each has a place for the values of all
            # others.
            results += [x.instruction if x in found else body.zeros(x.shape) for x in every]
            root = body.tuple_(results)
            called.append(self._add(branch, body.made, root))
        attributes = _with_branches(conditional.attributes, called)
        whole = out.add("conditional", whole_shape, conditional.operands, attributes)
        parts = [out.element(whole, x, n) for n, x in enumerate(whole_shape.elements)]
        opcode, given = "tuple", tuple(parts[: len(own)])
        if isinstance(shape, TupleShape):
            out.made.append(Instruction(conditional.name, shape, opcode, given))
        else:
            out.made.append(element(conditional.name, shape, whole, 0))
        taken = _Recorded(branch_name(name), parts[len(own)], _INDEX)
        rest = zip(every, parts[len(own) + 1 :], strict=True)
        return [taken, *(_Recorded(x.name, part, x.shape) for x, part in rest)]


class _Body:
    """The instructions of a computation that is being rebuilt, and fresh names for more."""

    def __init__(self, made: list[Instruction], names: Names) -> None:
        self.made, self._names = made, names

    def add(
        self,
        opcode: str,
        shape: Shape,
        operands: Sequence[str] = (),
        attributes: Mapping[str, Any] | None = None,
    ) -> str:
        """Append an instruction under a fresh name; return the name."""
        name = self._names.fresh(f"recorded.{opcode}")
        self.made.append(Instruction(name, shape, opcode, tuple(operands), dict(attributes or {})))
        return name

    def element(self, tuple_: str, shape: Shape, number: int) -> str:
        """Append a get-tuple-element; return its name."""
        return self.add("get-tuple-element", shape, (tuple_,), {"index": number})

    def tuple_(self, elements: Sequence[str]) -> str:
        """Append a tuple of earlier instructions; return its name."""
        shapes = {i.name: i.shape for i in self.made}
        return self.add("tuple", TupleShape(tuple(shapes[x] for x in elements)), elements)

    def integer(self, value: int) -> str:
        """Append an s32 constant; return its name."""
        literal = Literal(_INDEX, np.asarray(value, np.int32))
        return self.add("constant", _INDEX, (), {"literal": literal})

    def zeros(self, shape: Shape) -> str:
        """Append a broadcast zero; return its name."""
        assert isinstance(shape, ArrayShape)
        scalar = ArrayShape(shape.element_type)
        literal = Literal(scalar, np.zeros((), shape.element_type.numpy))
        zero = self.add("constant", scalar, (), {"literal": literal})
        return self.add("broadcast", shape, (zero,), {"dimensions": ()})

    def open_parameter(self, shape: TupleShape, own: Shape) -> str:
        """Replace the parameter, of shape ``own``, by a longer tuple, whose front is put together
        under the old name so that its users stay valid; return the name of the new parameter."""
        assert isinstance(own, TupleShape)
        (place,) = (n for n, i in enumerate(self.made) if i.opcode == "parameter")
        start = _Body([], self._names)
        state = start.add("parameter", shape, (), {"parameter_number": 0})
        parts = [start.element(state, x, n) for n, x in enumerate(own.elements)]
        start.made.append(Instruction(self.made[place].name, own, "tuple", tuple(parts)))
        self.made[place : place + 1] = start.made
        return state

    def storing(self, shape: TupleShape, results: Sequence[str], found: Sequence[_Recorded]) -> str:
        """Write each recorded value into row ``counter`` of its stack, increment the counter, and
        return the name of the new state tuple: the loop's own results, the counter and the
        stacks."""
        own = TupleShape(shape.elements[: len(results)])
        state = self.open_parameter(shape, own)
        counter = self.element(state, _INDEX, len(results))
        after = self.add("add", _INDEX, (counter, self.integer(1)))
        zero, stored = self.integer(0), []
        for place, value in enumerate(found, len(results) + 1):
            stack = shape.elements[place]
            assert isinstance(stack, ArrayShape)
            old = self.element(state, stack, place)
            one = ArrayShape(stack.element_type, (1, *stack.dims[1:]))
            row = self.add("reshape", one, (value.instruction,))
            starts = (counter, *(zero for _ in stack.dims[1:]))
            stored.append(self.add("dynamic-update-slice", stack, (old, row, *starts)))
        return self.tuple_([*results, after, *stored])


def _stack(shape: Shape, rows: int) -> ArrayShape:
    assert isinstance(shape, ArrayShape)
    return ArrayShape(shape.element_type, (rows, *shape.dims))


def _with_branches(attributes: Mapping[str, Any], called: Sequence[str]) -> dict[str, Any]:
    if "branch_computations" in attributes:
        return {**attributes, "branch_computations": tuple(called)}
    pair = ("true_computation", "false_computation")
    return {**attributes, **dict(zip(pair, called, strict=True))}


def _source(made: Mapping[str, Instruction], instruction: Instruction) -> Instruction:
    """Follow get-tuple-elements of tuple instructions back to the instruction that computes the
    element."""
    while instruction.opcode == "get-tuple-element":
        tuple_ = made[instruction.operands[0]]
        if tuple_.opcode != "tuple":
            break
        number = instruction.attributes["index"]
        assert isinstance(number, int)
        instruction = made[tuple_.operands[number]]
    return instruction
