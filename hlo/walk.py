"""Walk programs for every interpretation: shapes, NumPy arrays, C expressions.

A *column* is a package with one function per opcode: operands positional, attributes keyword-only,
the same names in every column. :func:`follow` applies them in order.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
import keyword
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from hlo.attributes import COMPUTATION_ATTRIBUTES, Attribute
from hlo.errors import Unsupported
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import EFFECT, ELEMENTWISE, MONOID, STRUCTURAL, having, of_family
from hlo.types import Shape, TupleShape

V = TypeVar("V")
R = TypeVar("R")

_MONOIDS = having(MONOID)
_EFFECTS = having(EFFECT)
_OF_ELEMENTS = of_family(ELEMENTWISE) | having(STRUCTURAL)


@lru_cache(maxsize=1024)
def function_name(opcode: str) -> str:
    """Return the Python name of an opcode: ``_`` for ``-``; keywords and builtins end in ``_``."""
    name = opcode.replace("-", "_")
    owned = keyword.iskeyword(name) or hasattr(builtins, name)
    return f"{name}_" if owned else name


def monoid(computation: Computation) -> str | None:
    """Return the opcode of a computation that is a single ``op(parameter 0, parameter 1)``, in
    either order, of a monoid, with no effect beside it; else None."""
    root = computation.root_instruction
    parameters = [p.name for p in computation.parameters]
    of_both = len(parameters) == 2 and sorted(root.operands) == sorted(parameters)
    if (
        not of_both
        or root.opcode not in _MONOIDS
        or any(map(has_own_effect, computation.instructions))
    ):
        return None
    return root.opcode


def has_own_effect(instruction: Instruction) -> bool:
    """Return whether an instruction has side effects, whatever those that it calls do."""
    is_declared = instruction.attributes.get("custom_call_has_side_effect")
    return bool(is_declared) or instruction.opcode in _EFFECTS


@dataclass(frozen=True)
class Callee(Generic[V]):
    """Hold a computation as an op's function gets it: a callable on values of the column."""

    computation: Computation
    call: Callable[..., V]

    def __call__(self, *arguments: V) -> V:
        return self.call(*arguments)

    @property
    def monoid(self) -> str | None:
        """Return add, multiply, maximum, … if the computation is just that, else None."""
        return monoid(self.computation)

    @property
    def is_elementwise(self) -> bool:
        """Return whether the computation has neither effects nor loops, so that it may be applied
        to more than its operands, or more often than needed."""
        return all(i.opcode in _OF_ELEMENTS for i in self.computation.instructions)

    def bundled(self, results: Sequence[R]) -> R | tuple[R, ...]:
        """Return the results of a fold: a tuple if the computation returns one, also of one result
        (XLA's ``InferReduceShape``), else the single result."""
        if isinstance(self.computation.root_instruction.shape, TupleShape):
            return tuple(results)
        (result,) = results
        return result


@dataclass(frozen=True, slots=True)
class Op:
    """Hold a column's function for one opcode, and which keywords of the driver it takes."""

    function: Callable[..., object]
    given: frozenset[str]  # of _GIVEN, those that the signature names
    home: str  # the module it is in


# Annotations that mean something to a few ops; their functions name them.
ANNOTATIONS = ("backend_config", "frontend_attributes")  # those that a function may ask for
# ``write`` and ``block`` are for kernels of the C backend: where they store, where they append.
_GIVEN = frozenset(("shape", "operand_shape", "operand_shapes", "write", "block", *ANNOTATIONS))


@cache
def column(*packages: str) -> Mapping[str, Op]:
    """Map function names to ops, of all modules in ``packages`` that declare ``__all__``."""
    found: dict[str, Op] = {}
    for package in packages:
        path = importlib.import_module(package).__path__
        for info in pkgutil.iter_modules(path):
            module = importlib.import_module(f"{package}.{info.name}")
            for name in getattr(module, "__all__", ()):
                function = getattr(module, name)
                given = _GIVEN & set(inspect.signature(function).parameters)
                found[name] = Op(function, frozenset(given), module.__name__)
    return MappingProxyType(found)


def called(instruction: Instruction) -> tuple[str, ...]:
    """Return the names of the computations that an instruction calls, in attribute order."""
    names: list[str] = []
    for attribute in instruction.attributes:
        if attribute in COMPUTATION_ATTRIBUTES:
            value = instruction.attributes[attribute]
            names.extend((value,) if isinstance(value, str) else value)  # type: ignore[arg-type]
    return tuple(names)


def with_callees(
    attributes: Mapping[str, Attribute], callee: Callable[[str], Any]
) -> dict[str, Any]:
    """Replace the name of each called computation in attributes by ``callee`` of it."""
    result: dict[str, Any] = {}
    for name, value in attributes.items():
        if name in COMPUTATION_ATTRIBUTES:
            one = isinstance(value, str)
            result[name] = callee(value) if one else tuple(map(callee, value))  # type: ignore[arg-type]
        else:
            result[name] = value
    return result


def renamed(
    computation: Computation,
    computations: Callable[[str], str],
    instructions: Callable[[str], str] = str,
) -> Computation:
    """Rename a computation, the computations that it calls, and its instructions."""
    changed = tuple(
        instruction._replace(
            name=instructions(instruction.name),
            operands=tuple(map(instructions, instruction.operands)),
            attributes=with_callees(instruction.attributes, computations),
        )
        for instruction in computation.instructions
    )
    name, root = computations(computation.name), instructions(computation.root)
    return replace(computation, name=name, instructions=changed, root=root)


def keywords(
    module: Module, instruction: Instruction, enter: Callable[[Computation], Callable[..., V]]
) -> dict[str, object]:
    """Return an instruction's attributes as keyword arguments, with a Callee for each computation
    name; ``enter`` makes its function."""

    def callee(name: str) -> Callee[V]:
        computation = module.computation(name)
        return Callee(computation, enter(computation))

    return with_callees(instruction.attributes, callee)


def bound(
    op: Op,
    instruction: Instruction,
    given: Mapping[str, object],
    operand_shapes: Sequence[Shape] = (),
) -> Callable[..., Any]:
    """Bind all keyword arguments of a column's function; what is left are the operands.

    ``given`` are the attributes; ``operand_shapes`` are the declared shapes of the operands, with
    their layouts, for ops that depend on these (custom-call), or on the first one (bitcast).
    """
    extra: dict[str, object] = {}
    if "operand_shape" in op.given:
        extra["operand_shape"] = operand_shapes[0] if operand_shapes else None
    if "operand_shapes" in op.given:
        extra["operand_shapes"] = tuple(operand_shapes)
    if "shape" in op.given:
        extra["shape"] = instruction.shape
    for name in op.given.intersection(ANNOTATIONS):
        extra[name] = instruction.annotations.get(name, "")
    return partial(op.function, **given, **extra) if given or extra else op.function


def call(
    op: Op,
    instruction: Instruction,
    operands: Sequence[V],
    given: Mapping[str, object],
    operand_shapes: Sequence[Shape] = (),
) -> V:
    """Apply a column's function to an instruction's operands, as :func:`bound` binds it."""
    return bound(op, instruction, given, operand_shapes)(*operands)  # type: ignore[no-any-return]


def live(computation: Computation, effects: Callable[[Instruction], bool]) -> frozenset[str]:
    """Return the names of live instructions: the root, those with effects, and their producers."""
    needed = {computation.root}
    for instruction in reversed(computation.instructions):
        if instruction.name in needed or effects(instruction):
            needed.add(instruction.name)
            needed.update(instruction.operands)
    return frozenset(needed)


class Visit(NamedTuple):
    """Hold an instruction, the slots of its operands, and the slots whose live range ends there."""

    instruction: Instruction
    operands: tuple[int, ...]
    last_read: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Hold a computation prepared to be evaluated any number of times.

    Each value has a slot: first those of the parameters, by their numbers in ``parameters``, then
    one for each visit in order.
    """

    parameters: tuple[int, ...]
    visits: tuple[Visit, ...]
    root: int  # its slot


def scheduled(
    computation: Computation, instructions: Iterable[Instruction] | None = None
) -> Schedule:
    """Assign a slot to each value of a computation, and compute its last use (liveness)."""
    order = list(computation.instructions if instructions is None else instructions)
    parameters = [i for i in order if i.opcode == "parameter"]
    order = [i for i in order if i.opcode != "parameter"]
    slots = {i.name: slot for slot, i in enumerate((*parameters, *order))}
    # The last reader of each value: later ones take the place of earlier ones.
    readers = {name: i.name for i in order for name in i.operands}
    root = slots[computation.root]
    visits = []
    for instruction in order:
        ended = [n for n in dict.fromkeys(instruction.operands) if readers[n] == instruction.name]
        if instruction.name not in readers:
            ended.append(instruction.name)
        ending = tuple(slots[name] for name in ended if slots[name] != root)
        operands = tuple(slots[name] for name in instruction.operands)
        visits.append(Visit(instruction, operands, ending))
    numbers: list[Any] = [p.attributes["parameter_number"] for p in parameters]
    return Schedule(tuple(numbers), tuple(visits), root)


def follow(
    schedule: Schedule, arguments: Sequence[V], apply: Callable[[Instruction, list[V]], V]
) -> V:
    """Evaluate a computation on ``arguments``; ``apply`` computes each other instruction.

    A value is dropped after its last use, so that only live values take memory.
    """
    values: list[Any] = [arguments[number] for number in schedule.parameters]
    for instruction, operands, last_read in schedule.visits:
        values.append(apply(instruction, [values[slot] for slot in operands]))
        for slot in last_read:
            values[slot] = None
    return values[schedule.root]  # type: ignore[no-any-return]


def walk(
    computation: Computation,
    arguments: Sequence[V],
    apply: Callable[[Instruction, list[V]], V],
    instructions: Iterable[Instruction] | None = None,
) -> V:
    """Evaluate a computation once, as :func:`follow` does."""
    return follow(scheduled(computation, instructions), arguments, apply)


def op_of(ops: Mapping[str, Op], instruction: Instruction, where: str) -> Op:
    """Return the column's op for an instruction; if it has none, raise Unsupported with
    ``where``."""
    op = ops.get(function_name(instruction.opcode))
    if op is None:
        raise Unsupported(f"%{instruction.name}: {where} does not implement {instruction.opcode}")
    return op
