"""Hoist loop-invariant instructions out of ``while`` loops (loop-invariant code motion).

An element of a loop's state is invariant if the body hands it on unchanged. What is computed from
invariant elements and constants alone is computed once, before the loop, and carried as one more
element of the state:

    body: (k, z, x) -> (k + 1, z * z + f(x), x)

becomes y = f(x) before the loop, and

    body: (k, z, x, y) -> (k + 1, z * z + y, x, y)

where that is less work: loading the array in each trip costs time as well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from hlo.module import Computation, Instruction, Module
from hlo.opcodes import (
    ASYNC,
    CALLS,
    DONE,
    EFFECT,
    ELEMENTARY,
    EXCHANGES,
    OPAQUE,
    PENDING,
    RANKS,
    STATEFUL,
    STRUCTURAL,
    having,
)
from hlo.passes.cost import COST
from hlo.passes.effects import effects
from hlo.passes.rewriting import Names, integer
from hlo.passes.updates_in_place import is_static_array
from hlo.types import ArrayShape, Shape, TupleShape

# What may not run another number of times or elsewhere, and what may not end at all.
_KEPT = (EFFECT, STATEFUL, RANKS, EXCHANGES, ASYNC, PENDING, DONE, CALLS, OPAQUE, STRUCTURAL)
_NEVER = frozenset[str]().union(*map(having, _KEPT)) | {"while", "conditional", "scan", "map"}
# A transpose has no operations, but reads across memory: once is better than in each trip.
_FREE = frozenset(name for name, cost in COST.items() if not cost) - {"transpose"}
_DEAR = having(ELEMENTARY)
_FEWEST = 16  # elements that are worth an array of their own: fewer stay in registers
_SMALL = 1 << 20  # bytes that stay in a cache


def loop_invariants(module: Module) -> Module:
    """Hoist the invariants of each loop before it, those of nested loops before the outermost."""
    return _Motion(module).done()


@dataclass(frozen=True, slots=True)
class Loop:
    """Hold a ``while`` whose body and condition read its tuple state by get-tuple-element only."""

    instruction: Instruction
    body: Computation
    condition: Computation
    state: TupleShape

    @property
    def root(self) -> Instruction:
        """Return the body's root: the tuple of the next trip's state."""
        return self.body.root_instruction

    def handed_on(self) -> frozenset[int]:
        """Return the indices of the state's elements that the body returns unchanged."""
        (parameter,) = self.body.parameters
        reads = (i for i in self.body.instructions if _is_read(i))
        read = {i.name: integer(i, "index") for i in reads if i.operands == (parameter.name,)}
        operands = enumerate(self.root.operands)
        return frozenset(k for k, name in operands if read.get(name) == k)


def _is_read(instruction: Instruction) -> bool:
    return instruction.opcode == "get-tuple-element"


class _Motion:
    """Rebuild a module computation by computation, callees first: inner loops before outer ones."""

    def __init__(self, module: Module) -> None:
        self._module, self._has_effect = module, effects(module)
        self._done: dict[str, Computation] = {}
        self._names = Names(c.name for c in module.computations)

    def done(self) -> Module:
        """Return the module with all loops rebuilt."""
        for computation in self._module.computations:
            rebuilt = self._rebuilt(computation)
            self._done[computation.name] = rebuilt
        return replace(self._module, computations=tuple(self._done.values()))

    def _rebuilt(self, computation: Computation) -> Computation:
        """Return a computation with the invariants of its loops hoisted."""
        if all(i.opcode != "while" for i in computation.instructions):
            return computation
        names = Names(i.name for i in computation.instructions)
        instructions: dict[str, Instruction] = {}
        replaced: dict[str, str] = {}
        for instruction in computation.instructions:
            if not _is_read(instruction):  # those read the new loop as they did the old one
                operands = tuple(replaced.get(name, name) for name in instruction.operands)
                instruction = instruction._replace(operands=operands)
            loop = rebuildable_loop(instruction, self._done)
            chosen = [] if loop is None else _worth_moving(loop, self._has_effect)
            if loop is None or not chosen:
                instructions[instruction.name] = instruction
                continue
            moved, whole = self._moved(loop, chosen, names, instructions)
            instructions |= {i.name: i for i in moved}
            replaced[instruction.name] = whole
        root = replaced.get(computation.root, computation.root)
        return replace(computation, instructions=tuple(instructions.values()), root=root)

    def _moved(
        self,
        loop: Loop,
        chosen: list[Instruction],
        names: Names,
        definitions: Mapping[str, Instruction],
    ) -> tuple[list[Instruction], str]:
        """Return the instructions that replace a loop, and the last one's name: the hoisted ones,
        the loop with a wider state, and a tuple of its old state. ``definitions`` are the
        instructions above the loop, by name."""
        (start,) = loop.instruction.operands
        made: list[Instruction] = []

        def add(instruction: Instruction) -> str:
            made.append(instruction._replace(name=names.fresh(instruction.name)))
            return made[-1].name

        given = definitions.get(start)
        elements = [
            given.operands[k]
            if given is not None and given.opcode == "tuple"
            else add(_read(f"{start}.{k}", start, shape, k))
            for k, shape in enumerate(loop.state.elements)
        ]
        copies: dict[str, str] = {}
        cone = _cone({i.name: i for i in loop.body.instructions}, chosen)
        for inner in loop.body.instructions:
            if inner.name not in cone:
                continue
            if _is_read(inner):
                copies[inner.name] = elements[integer(inner, "index")]
            else:
                operands = tuple(copies[name] for name in inner.operands)
                copies[inner.name] = add(inner._replace(operands=operands))
        state = TupleShape((*loop.state.elements, *(i.shape for i in chosen)))
        moved = tuple(copies[i.name] for i in chosen)
        begin = add(Instruction(f"{start}.wider", state, "tuple", (*elements, *moved)))
        own = loop.instruction
        attributes = {
            **own.attributes,
            "body": self._keep(_wider_body(loop, chosen, state)),
            "condition": self._keep(_wider(loop.condition, state)),
        }
        made.append(own._replace(shape=state, operands=(begin,), attributes=attributes))
        parts = [
            add(_read(f"{own.name}.{k}", own.name, shape, k))
            for k, shape in enumerate(loop.state.elements)
        ]
        # For users of the whole state; get-tuple-elements find theirs in the wider loop, at the
        # same index.
        return made, add(Instruction(f"{own.name}.state", loop.state, "tuple", tuple(parts)))

    def _keep(self, computation: Computation) -> str:
        """Add a computation to the module; return its name."""
        name = self._names.fresh(computation.name)
        self._done[name] = replace(computation, name=name)
        return name


def rebuildable_loop(
    instruction: Instruction, computations: Mapping[str, Computation]
) -> Loop | None:
    """Return an instruction as a loop; None if it is none, or one that cannot be rebuilt."""
    if instruction.opcode != "while" or not isinstance(instruction.shape, TupleShape):
        return None
    body, condition = (
        computations[str(instruction.attributes[name])] for name in ("body", "condition")
    )
    if body.root_instruction.opcode != "tuple":
        return None
    if not (_reads_elements(body) and _reads_elements(condition)):
        return None
    return Loop(instruction, body, condition, instruction.shape)


def _reads_elements(computation: Computation) -> bool:
    """Test whether a computation reads its one parameter by element only."""
    (parameter,) = computation.parameters
    return computation.root != parameter.name and all(
        _is_read(i) for i in computation.instructions if parameter.name in i.operands
    )


def _read(name: str, of: str, shape: Shape, number: int) -> Instruction:
    return Instruction(name, shape, "get-tuple-element", (of,), {"index": number})


def _worth_moving(loop: Loop, has_effect: Callable[[Instruction], bool]) -> list[Instruction]:
    """Return the invariants to hoist: those that other instructions of the body read, and that are
    cheaper to load in each trip than to compute."""
    invariant = invariants(loop, has_effect)
    others = (i for i in loop.body.instructions if i.name not in invariant)
    read = dict.fromkeys(name for i in others for name in i.operands if name in invariant)
    found = [invariant[name] for name in read]
    return [i for i in found if _is_less_work(i, _cone(invariant, [i]).values())]


def invariants(loop: Loop, has_effect: Callable[[Instruction], bool]) -> Mapping[str, Instruction]:
    """Return the invariant instructions of a loop's body, by name."""
    (parameter,) = loop.body.parameters
    handed_on = loop.handed_on()
    found: dict[str, Instruction] = {}
    for instruction in loop.body.instructions:
        if _is_read(instruction):
            is_state = instruction.operands == (parameter.name,)
            is_invariant = is_state and integer(instruction, "index") in handed_on
        elif instruction.opcode in _NEVER:
            is_invariant = instruction.opcode == "constant"
        else:
            is_invariant = all(name in found for name in instruction.operands)
        if is_invariant and is_static_array(instruction.shape) and not has_effect(instruction):
            found[instruction.name] = instruction
    return found


def _cone(
    body: Mapping[str, Instruction], wanted: Collection[Instruction]
) -> Mapping[str, Instruction]:
    """Return the backward slice of invariants in a body, by name: all producers and themselves."""
    found: dict[str, Instruction] = {}
    todo = list(wanted)
    while todo:
        instruction = todo.pop()
        if instruction.name not in found:
            found[instruction.name] = instruction
            if not _is_read(instruction):
                todo += (body[name] for name in instruction.operands)
    return found


def _is_less_work(result: Instruction, cone: Collection[Instruction]) -> bool:
    """Return whether loading an invariant in each trip costs less than computing it from its
    backward slice (``cone``).

    Instructions that are no elementwise maps always cost more. With elementary functions the result
    may be as large as a cache or twice the operands; with cheap operations, one byte larger than
    the operands for each operation.
    """
    assert isinstance(result.shape, ArrayShape)
    work = [i for i in cone if not _is_read(i) and i.opcode not in _FREE]
    if any(i.opcode not in COST for i in work):
        return True
    if not work or result.shape.elements < _FEWEST:
        return False
    bytes_read = sum(_bytes(i) for i in cone if _is_read(i))
    if any(i.opcode in _DEAR for i in work):
        return _bytes(result) <= max(2 * bytes_read, _SMALL)
    operations = sum(max(1, COST[i.opcode]) * _elements(i) for i in work)
    return _bytes(result) <= bytes_read + operations


def _elements(instruction: Instruction) -> int:
    assert isinstance(instruction.shape, ArrayShape)
    return instruction.shape.elements


def _bytes(instruction: Instruction) -> int:
    assert isinstance(instruction.shape, ArrayShape)
    return _elements(instruction) * instruction.shape.element_type.numpy.itemsize


def _wider(computation: Computation, state: TupleShape) -> Computation:
    """Return a computation whose parameter is a wider state."""
    (parameter,) = computation.parameters
    instructions = (
        i._replace(shape=state) if i.name == parameter.name else i for i in computation.instructions
    )
    return replace(computation, instructions=tuple(instructions))


def _wider_body(loop: Loop, chosen: list[Instruction], state: TupleShape) -> Computation:
    """Return the body with hoisted instructions read from the state and carried on in it."""
    names = Names(i.name for i in loop.body.instructions)
    (parameter,) = loop.body.parameters
    count = len(loop.state.elements)
    reads = {
        moved.name: _read(names.fresh(moved.name), parameter.name, moved.shape, count + number)
        for number, moved in enumerate(chosen)
    }
    handed = tuple(read.name for read in reads.values())
    instructions: list[Instruction] = []
    for instruction in _wider(loop.body, state).instructions:
        operands = tuple(
            reads[name].name if name in reads else name for name in instruction.operands
        )
        if instruction.name == loop.body.root:
            operands, instruction = (*operands, *handed), instruction._replace(shape=state)
        instructions.append(instruction._replace(operands=operands))
        if instruction.name == parameter.name:
            instructions += reads.values()
    return replace(loop.body, instructions=tuple(instructions))
