"""One small walker for every interpretation of a program: shapes, NumPy arrays, C.

A *column* is a package with one function per opcode: operands positional, attributes keyword-only,
the same names in every column. :func:`walk` calls them in order.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
import keyword
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from hlo.attributes import COMPUTATION_ATTRIBUTES, Attribute
from hlo.errors import Unsupported
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import MONOID, having
from hlo.types import Shape, TupleShape

V = TypeVar("V")
R = TypeVar("R")

_MONOIDS = having(MONOID)


@lru_cache(maxsize=1024)
def function_name(opcode: str) -> str:
    """The Python name of an opcode: ``-`` becomes ``_``; a name Python owns gets a trailing one."""
    name = opcode.replace("-", "_")
    owned = keyword.iskeyword(name) or hasattr(builtins, name)
    return f"{name}_" if owned else name


def monoid(computation: Computation) -> str | None:
    """The opcode if the computation is ``op(parameter 0, parameter 1)`` and nothing else."""
    root = computation.root_instruction
    parameters = [p.name for p in computation.parameters]
    of_both = len(parameters) == 2 and sorted(root.operands) == sorted(parameters)
    return root.opcode if of_both and root.opcode in _MONOIDS else None


@dataclass(frozen=True)
class Callee(Generic[V]):
    """A computation as an op's function receives it: call it with values of the column."""

    computation: Computation
    call: Callable[..., V]

    def __call__(self, *arguments: V) -> V:
        return self.call(*arguments)

    @property
    def monoid(self) -> str | None:
        """add, multiply, maximum, … if that is all the computation does, else None."""
        return monoid(self.computation)

    def bundled(self, results: Sequence[R]) -> R | tuple[R, ...]:
        """The results of a fold by this computation: a tuple if it gives one, also of one result
        (XLA's ``InferReduceShape``), else the only one."""
        if isinstance(self.computation.root_instruction.shape, TupleShape):
            return tuple(results)
        (result,) = results
        return result


@dataclass(frozen=True, slots=True)
class Op:
    """A column's function for one opcode, with the keywords only the driver can give."""

    function: Callable[..., object]
    given: frozenset[str]  # of _GIVEN, those that the signature names
    home: str  # the module it is in


# Annotations that mean something to a few ops; their functions name them.
_ANNOTATIONS = ("backend_config", "frontend_attributes")
_GIVEN = frozenset(("shape", "operand_shape", "write", "block", *_ANNOTATIONS))


@cache
def column(*packages: str) -> Mapping[str, Op]:
    """Function name → op, of all modules directly in ``packages`` that declare ``__all__``."""
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
    """The names of the computations that an instruction calls, in attribute order."""
    names: list[str] = []
    for attribute in instruction.attributes:
        if attribute in COMPUTATION_ATTRIBUTES:
            value = instruction.attributes[attribute]
            names.extend((value,) if isinstance(value, str) else value)  # type: ignore[arg-type]
    return tuple(names)


def with_callees(
    attributes: Mapping[str, Attribute], callee: Callable[[str], Any]
) -> dict[str, Any]:
    """Attributes with something else for the name of each computation that is called."""
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
    """A computation with other names of computations, its own and of those that are called, and of
    its instructions."""
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
    """An instruction's attributes as keywords; computations become callees that ``enter`` makes."""

    def callee(name: str) -> Callee[V]:
        computation = module.computation(name)
        return Callee(computation, enter(computation))

    return with_callees(instruction.attributes, callee)


def call(
    op: Op,
    instruction: Instruction,
    operands: Sequence[V],
    given: Mapping[str, object],
    operand_shape: Shape | None = None,
) -> V:
    """Apply a column's function to an instruction's operands.

    ``given`` has all its keywords; ``operand_shape`` is the declared shape of the first operand,
    with its layout, for the op (bitcast) whose result depends on it.
    """
    if not op.given:
        return op.function(*operands, **given)  # type: ignore[return-value]
    extra: dict[str, object] = {}
    if "operand_shape" in op.given:
        extra["operand_shape"] = operand_shape
    if "shape" in op.given:
        extra["shape"] = instruction.shape
    for name in op.given.intersection(_ANNOTATIONS):
        extra[name] = instruction.annotations.get(name, "")
    return op.function(*operands, **given, **extra)  # type: ignore[return-value]


def live(computation: Computation, effects: Callable[[Instruction], bool]) -> frozenset[str]:
    """Names the root needs, or that have effects, or that those need."""
    needed = {computation.root}
    for instruction in reversed(computation.instructions):
        if instruction.name in needed or effects(instruction):
            needed.add(instruction.name)
            needed.update(instruction.operands)
    return frozenset(needed)


def walk(
    computation: Computation,
    arguments: Sequence[V],
    apply: Callable[[Instruction, list[V]], V],
    instructions: Iterable[Instruction] | None = None,
) -> V:
    """Evaluate a computation: parameters are ``arguments``, every other result is ``apply``'s.

    A value is dropped after its last use, so memory is that of the live values only.
    """
    order = list(computation.instructions if instructions is None else instructions)
    last_use = {name: i for i, instruction in enumerate(order) for name in instruction.operands}
    last_use[computation.root] = len(order)
    values: dict[str, V] = {}
    for position, instruction in enumerate(order):
        if instruction.opcode == "parameter":
            values[instruction.name] = arguments[instruction.attributes["parameter_number"]]  # type: ignore[index]
        else:
            operands = [values[name] for name in instruction.operands]
            values[instruction.name] = apply(instruction, operands)
            del operands
        for name in instruction.operands:
            if last_use[name] == position:
                values.pop(name, None)
        if instruction.name not in last_use:
            del values[instruction.name]
    return values[computation.root]


def op_of(ops: Mapping[str, Op], instruction: Instruction, where: str) -> Op:
    """The column's op for an instruction, or Unsupported naming ``where``."""
    op = ops.get(function_name(instruction.opcode))
    if op is None:
        raise Unsupported(f"%{instruction.name}: {where} does not implement {instruction.opcode}")
    return op
