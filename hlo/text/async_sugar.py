"""Read and print ``add-start``, ``add-update``, ``add-done``: XLA's short form of an asynchronous
call of a single instruction.

It stands for an async-start that calls a computation of that one instruction, which has no text of
its own. Source: ``CreateInstruction`` of XLA's ``hlo_parser.cc``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hlo.async_states import is_prefix
from hlo.attributes import Attribute
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import OPCODES
from hlo.types import Shape, TupleShape, compatible

_PHASES = {"-start": "async-start", "-update": "async-update", "-done": "async-done"}
_WRAPPED = "async_wrapped"  # XLA's name for it
_THREAD = "async_execution_thread"
# What is said about an instruction and changes what it does, so that it goes with it.
_INSIDE = frozenset(("backend_config",))


def wrapped_opcode(opcode: str) -> tuple[str, str] | None:
    """Split ``add-start`` into (``async-start``, ``add``); None for an opcode without sugar."""
    for suffix, phase in _PHASES.items():
        wrapped = opcode.removesuffix(suffix)
        if wrapped != opcode and wrapped in OPCODES and opcode not in OPCODES:
            return phase, wrapped
    return None


def fresh(name: str, taken: Callable[[str], bool], numbers: dict[str, int]) -> str:
    """Return the first name of ``name``, ``name.1``, ``name.2``, … that is not taken.

    ``numbers`` says where to go on counting each name, so that n of them take linear time: what was
    taken is never free again.
    """
    found, number = name, numbers.get(name, 0)
    while taken(found):
        number += 1
        found = f"{name}.{number}"
    numbers[name] = number
    return found


def started(
    start: Instruction, operands: Sequence[Shape], name: str
) -> tuple[Computation, Instruction]:
    """Expand an ``add-start``: return its computation, called ``name``, and the async-start.

    Raises ValueError if the shape is not ``((operands), result, …)``.
    """
    named = wrapped_opcode(start.opcode)
    assert named is not None
    found = start.shape.elements if isinstance(start.shape, TupleShape) else ()
    if len(found) < 2 or not isinstance(found[0], TupleShape):
        raise ValueError(f"expected a shape ((operands), result, …) of {start.opcode}")
    computation = _wrapped(named[1], operands, found[1], start, name)
    attributes: dict[str, Attribute] = {"calls": name}
    if _THREAD in start.attributes:
        attributes[_THREAD] = start.attributes[_THREAD]
    outside = {k: text for k, text in start.annotations.items() if k not in _INSIDE}
    return computation, start._replace(opcode=named[0], attributes=attributes, annotations=outside)


def _parameters(shapes: Sequence[Shape], first: int = 0) -> list[Instruction]:
    return [
        Instruction(
            f"async_param.{n}" if n else "async_param",
            shape,
            "parameter",
            attributes={"parameter_number": n},
        )
        for n, shape in enumerate(shapes, first)
    ]


def _wrapped(
    opcode: str, operands: Sequence[Shape], result: Shape, start: Instruction, name: str
) -> Computation:
    """Build the computation of one instruction on parameters."""
    parameters = _parameters(operands)
    root = Instruction(
        "async_op",
        result,
        opcode,
        tuple(parameter.name for parameter in parameters),
        {k: value for k, value in start.attributes.items() if k != _THREAD},
        {k: text for k, text in start.annotations.items() if k in _INSIDE},
    )
    thread = start.attributes.get(_THREAD)
    annotations = {"execution_thread": f'"{thread}"'} if thread else {}
    return Computation(name, (*parameters, root), root.name, annotations)


def extended(
    computation: Computation, more: Sequence[Shape], shape: Shape, phase: str
) -> Computation:
    """Extend the computation that :func:`started` made by the operands and the results that an
    async-update (in its state) or an async-done adds."""
    result = shape if phase == "async-done" else _result_of(shape)
    root = computation.root_instruction
    first = len(computation.parameters)
    parameters = _parameters(more, first)
    grows = is_prefix(root.shape, result)
    root = root._replace(
        shape=result if grows else root.shape,
        operands=(*root.operands, *(parameter.name for parameter in parameters)),
    )
    return replace(computation, instructions=(*computation.instructions[:-1], *parameters, root))


def _result_of(state: Shape) -> Shape:
    found = state.elements if isinstance(state, TupleShape) else ()
    return found[1] if len(found) > 1 else TupleShape()


def sugared(module: Module) -> Module:
    """Replace each async-start whose short form reads back to it by that form, and leave out its
    computation. The result is for printing: ``hlo.verify`` rejects it."""
    hidden = _hidden(module)
    if not hidden:
        return module
    roots = {c.name: c.root_instruction for c in module.computations if c.name in hidden}
    shown = (_shown(c, roots) for c in module.computations if c.name not in hidden)
    return replace(module, computations=tuple(shown))


def _hidden(module: Module) -> frozenset[str]:
    """Return the names of the computations that are implied by sugar: they stand right before their
    caller, in order, have no other callers, and the names that the parser would give them."""
    if not any(c.name.startswith(_WRAPPED) for c in module.computations):
        return frozenset()
    chains = _chains(module)
    found: list[str] = []
    before: dict[str, None] = {}
    for computation in module.computations:
        if computation.name in chains and _reads_back(computation, chains[computation.name]):
            before[computation.name] = None
            continue
        calls = [i.attributes["calls"] for i in computation.instructions if _is_start(i)]
        if [name for name in calls if name in before] == [*before]:
            found += before
        before = {}
    taken = {c.name for c in module.computations}.difference(found)
    numbers: dict[str, int] = {}
    for name in found:
        if name != fresh(_WRAPPED, taken.__contains__, numbers):
            return frozenset()
        taken.add(name)
    return frozenset(found)


def _is_start(instruction: Instruction) -> bool:
    return instruction.opcode == "async-start" and "calls" in instruction.attributes


@dataclass(frozen=True, slots=True)
class _Chain:
    """Hold an async-start, its updates and done, and the shapes of the computation around."""

    start: Instruction
    others: list[Instruction]
    shapes: Mapping[str, Shape]


def _chains(module: Module) -> Mapping[str, _Chain]:
    """Map each computation that a single chain calls, and nothing else names, to that chain."""
    computations = {c.name for c in module.computations}
    # The entry is called from outside.
    named: dict[str, int] = {module.entry_name: 1}
    found: dict[str, list[_Chain]] = {}
    for computation in module.computations:
        shapes = {i.name: i.shape for i in computation.instructions}
        of_state: dict[str, _Chain] = {}
        for instruction in computation.instructions:
            chain = of_state.get(instruction.operands[0]) if instruction.operands else None
            if chain is not None and instruction.opcode in _PHASES.values():
                of_state[instruction.name] = chain
                chain.others.append(instruction)
            elif _is_start(instruction):
                chain = of_state[instruction.name] = _Chain(instruction, [], shapes)
                found.setdefault(str(instruction.attributes["calls"]), []).append(chain)
            for value in instruction.attributes.values():
                for name in value if isinstance(value, tuple) else (value,):
                    if isinstance(name, str) and name in computations:
                        named[name] = named.get(name, 0) + 1
    own = {name: _names(name, chains[0]) for name, chains in found.items() if len(chains) == 1}
    return {name: found[name][0] for name, count in own.items() if named.get(name) == count}


def _names(computation: str, chain: _Chain) -> int:
    """Count how often a chain names its computation: at the start, and at updates and the done."""
    return 1 + sum(one.attributes.get("calls") == computation for one in chain.others)


def _with_sugar(start: Instruction, root: Instruction) -> Instruction:
    """Return an async-start as ``<opcode>-start`` of the instruction that it wraps."""
    thread = {k: value for k, value in start.attributes.items() if k == _THREAD}
    return start._replace(
        opcode=f"{root.opcode}-start",
        attributes={**root.attributes, **thread},
        annotations={**root.annotations, **start.annotations},
    )


def _reads_back(computation: Computation, chain: _Chain) -> bool:
    """Return whether the short form of a chain reads back to the same chain and computation."""
    again = _with_sugar(chain.start, computation.root_instruction)
    if wrapped_opcode(again.opcode) is None:
        return False
    operands = [chain.shapes[name] for name in chain.start.operands]
    try:
        made, start = started(again, operands, computation.name)
    except ValueError:
        return False
    for one in chain.others:
        more = [chain.shapes[name] for name in one.operands[1:]]
        made = extended(made, more, one.shape, one.opcode)
        adds = not compatible(one.shape, chain.shapes[one.operands[0]])
        if ("calls" in one.attributes) != (adds and one.opcode == "async-update"):
            return False
    return (computation, chain.start) == (made, start)


def _shown(computation: Computation, roots: Mapping[str, Instruction]) -> Computation:
    """Write the chains that call ``roots`` (wrapped instructions by computation) as sugar."""
    wrapped: dict[str, str] = {}  # async instructions by the opcode that they wrap
    instructions = []
    for instruction in computation.instructions:
        root = roots.get(str(instruction.attributes["calls"])) if _is_start(instruction) else None
        opcode = wrapped.get(instruction.operands[0]) if instruction.operands else None
        if root is not None:
            wrapped[instruction.name] = root.opcode
            instructions.append(_with_sugar(instruction, root))
        elif opcode is not None and instruction.opcode in _PHASES.values():
            wrapped[instruction.name] = opcode
            phase = instruction.opcode.removeprefix("async")
            given = {k: value for k, value in instruction.attributes.items() if k != "calls"}
            instructions.append(instruction._replace(opcode=opcode + phase, attributes=given))
        else:
            instructions.append(instruction)
    return replace(computation, instructions=tuple(instructions))
