"""Evaluate a module: walk its computations with the NumPy function of each op.

Values are those of :mod:`interp.values`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hlo.errors import ArgumentError, CollectiveError, Error, OutOfFuel, Unsupported, VerifyError
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import CALLS, EFFECT, ELEMENTWISE, SAME_SCALAR, STRUCTURAL, having, of_family
from hlo.types import ArrayShape, Shape, TupleShape, leaves
from hlo.verification.verify import verify
from hlo.walk import Op, call, called, column, keywords, live, op_of, walk
from interp.bounded_arrays import (
    Sizes,
    agreed,
    any_bounds,
    filled,
    growth_told,
    results_of,
    sizes_of,
)
from interp.feeds import Feeds, per_rank
from interp.ops import random
from interp.ops.custom_call import registered
from interp.ranks import Rank, ranks_of, running
from interp.values import Value, as_arrays, conforms, copied, described, from_caller, mapped, own

# A level of calls takes six Python frames, and Python allows a thousand.
_DEEPEST_CALLS = 80

_EFFECTS = having(EFFECT)
_SAME_SCALAR = having(SAME_SCALAR)
# What a scalar computation may consist of, besides calls, to be evaluated on whole arrays at once.
# A map of scalars is a call.
_ELEMENT_BY_ELEMENT = (
    of_family(ELEMENTWISE) | having(STRUCTURAL) | _SAME_SCALAR | {"bitcast-convert"}
)
_CALLS = having(CALLS) | {"map"}


def evaluate(
    module: Module,
    *arguments: Any,
    seed: int = 0,
    fuel: int | None = None,
    replicas: int = 1,
    partitions: int = 1,
    infeed: Iterable[Any] | None = None,
    outfeed: Any = None,
    from_host: Any = None,
    to_host: Any = None,
    custom_calls: Mapping[str, Callable[..., Any]] | None = None,
) -> Any:
    """The result of the entry computation; VerifyError if the module means nothing.

    One array (a tuple of arrays for a tuple) per parameter: NumPy's type and sizes must be the
    parameter's; a bounded dimension takes any size up to its bound. ``seed`` starts the random
    number generator of ``rng``; ``fuel`` bounds the number of instructions that each rank
    evaluates (OutOfFuel). ``infeed`` gives the values that the instruction takes, in order;
    ``outfeed.append`` receives those that are outfed; ``from_host`` and ``to_host`` are the same by
    channel, for recv and send with ``is_host_transfer``. ``custom_calls`` are functions by target:
    of the operands (a tuple), the result's shape and the backend_config as text, giving the result.

    With several replicas or partitions, the arguments are one tuple of arrays per rank, the result
    is one result per rank, and so are the feeds: rank ``replica * partitions + partition``.
    CollectiveError if ranks do not meet; ArgumentError if the module is made for another number of
    ranks.
    """
    verify(module)
    feeds = Feeds(infeed, outfeed, from_host, to_host)
    ranks = ranks_of(module, replicas, partitions, feeds)
    each = (arguments,) if ranks.size == 1 else per_rank(ranks.size, arguments, "arguments")
    values = [checked(module.entry, arrays) for arrays in each]

    def evaluated(rank: Rank) -> Value:
        evaluation = Evaluation(module, fuel, rank)
        mine = values[rank.number]
        given = registered(custom_calls)
        with given, running(rank):
            result = evaluation.result(mine, seed)
        try:
            return own(result, mine) if ranks.size == 1 else copied(result)
        except MemoryError as error:
            shape = module.entry.root_instruction.shape
            raise Unsupported(f"the result {shape} does not fit into memory") from error

    results = ranks.run(evaluated)
    return results[0] if ranks.size == 1 else tuple(results)


@dataclass(frozen=True, slots=True)
class _Step:
    """A prepared instruction: its op and keywords are looked up."""

    op: Op
    keywords: Mapping[str, object]
    operand_shape: Shape | None
    sizes: Sizes | None  # where operands are bounded


@dataclass(frozen=True, slots=True)
class Plan:
    """A prepared computation: its live instructions in order."""

    computation: Computation
    instructions: tuple[Instruction, ...]  # those that matter
    steps: Mapping[str, _Step]
    is_elementwise: bool  # can be evaluated on whole arrays


# What is done in place of an op, at an instruction of a computation: the op itself mostly.
Instead = Callable[[Computation, Instruction, Op], Op]


class Evaluation:
    """The state of one evaluation: prepared computations and the remaining fuel."""

    def __init__(
        self,
        module: Module,
        fuel: int | None,
        rank: Rank | None = None,
        *,
        ops: Mapping[str, Op] | None = None,
        instead: Instead | None = None,
        tell_growth: Callable[[], None] | None = None,
    ) -> None:
        """``ops`` are other meanings of the opcodes, by function name; ``instead`` gives that of
        single instructions; ``tell_growth`` is called when an array grows, where the language does
        not say what is in the room that it gains."""
        self.module, self.rank = module, rank
        self._fuel, self._all_fuel = fuel, fuel
        self._ops = column("interp.ops") if ops is None else ops
        self._instead, self._tell_growth = instead, tell_growth
        self._plans: dict[str, Plan] = {}
        self._effects = _checked_calls(module)
        self.is_bounded = any_bounds(module)

    def result(self, arguments: Sequence[Value], seed: int = 0) -> Value:
        """Evaluate the entry computation; ``seed`` starts the random numbers."""
        with np.errstate(all="ignore"), random.seeded(seed), growth_told(self._tell_growth):
            return self.run(self.plan(self.module.entry), *arguments)

    def plan(self, computation: Computation) -> Plan:
        """Prepare a computation, once."""
        plan = self._plans.get(computation.name)
        if plan is None:
            plan = self._plans[computation.name] = self._planned(computation)
        return plan

    def run(self, plan: Plan, *arguments: Value) -> Value:
        """Evaluate a computation on values of its parameters' shapes."""
        self._burn()
        if self.is_bounded:
            shapes = (parameter.shape for parameter in plan.computation.parameters)
            arguments = tuple(map(filled, arguments, shapes))
        return walk(plan.computation, arguments, partial(self.apply, plan), plan.instructions)

    def _planned(self, computation: Computation) -> Plan:
        names = live(computation, self.has_effect)
        instructions = tuple(
            i for i in computation.instructions if i.name in names and i.opcode != "parameter"
        )
        shapes = {i.name: i.shape for i in computation.instructions}
        steps = {}
        for instruction in instructions:
            given_shapes = [shapes[name] for name in instruction.operands]
            first = given_shapes[0] if given_shapes else None
            try:
                op = op_of(self._ops, instruction, "the interpreter")
            except Unsupported as error:
                raise Unsupported(f"{self._line(instruction)}{error}") from error
            if self._instead is not None:
                op = self._instead(computation, instruction, op)
            given = keywords(self.module, instruction, self.enter)
            sizes = sizes_of(instruction, given_shapes, results_of(self.module, instruction))
            steps[instruction.name] = _Step(op, given, first, sizes)
        parameters = tuple(p for p in computation.parameters if p.name in names)
        scalar = is_scalar(computation)
        return Plan(
            computation,
            parameters + instructions,
            steps,
            scalar and all(map(self._is_elementwise, instructions)),
        )

    def enter(self, computation: Computation) -> Callable[..., Value]:
        """Return a computation as a Python function, as callers receive it."""
        if is_scalar(computation):
            return lambda *arguments: self._run_batch(self.plan(computation), arguments)
        return lambda *arguments: self.run(self.plan(computation), *arguments)

    def has_effect(self, instruction: Instruction) -> bool:
        """Test whether it matters that, and after how many others, an instruction runs."""
        return _is_effect(instruction, self._effects)

    def _is_elementwise(self, instruction: Instruction) -> bool:
        if any(leaf.rank for leaf in leaves(instruction.shape)):
            return False
        if instruction.opcode in _CALLS:
            callees = map(self.module.computation, called(instruction))
            return all(self.plan(callee).is_elementwise for callee in callees)
        return instruction.opcode in _ELEMENT_BY_ELEMENT

    def refuel(self) -> None:
        """Restore the full fuel."""
        self._fuel = self._all_fuel

    def _burn(self) -> None:
        if self._fuel is not None:
            self._fuel -= 1
            if self._fuel < 0:
                raise OutOfFuel("the evaluation used up its fuel; does the program end?")

    def apply(self, plan: Plan, instruction: Instruction, operands: list[Value]) -> Value:
        """Evaluate one instruction."""
        self._burn()
        step = plan.steps[instruction.name]
        if self.rank is not None:
            self.rank.at(plan.computation.name, instruction)
        try:
            if step.sizes is not None:
                operands = agreed(step.sizes, operands)
            value = call(step.op, instruction, operands, step.keywords, step.operand_shape)
        except (Unsupported, ArgumentError, CollectiveError) as error:
            raise self._located(error, instruction) from error
        except MemoryError as error:
            full = Unsupported(f"{instruction.shape} does not fit into memory")
            raise self._located(full, instruction) from error
        value = as_arrays(value)
        if step.sizes is not None:
            value = filled(value, instruction.shape)
        if not conforms(value, instruction.shape):
            raise VerifyError(
                f"{self._line(instruction)}%{instruction.name} = {instruction.opcode}: the result"
                f" is {described(value)}, not {instruction.shape} as declared"
            )
        return value

    def _located(self, error: Error, instruction: Instruction) -> Error:
        """Add the instruction to an error's message, once."""
        if "%" in str(error):
            return error
        place = f"{self._line(instruction)}%{instruction.name} = {instruction.opcode}: "
        return type(error)(place + str(error))

    def _line(self, instruction: Instruction) -> str:
        if instruction.offset < 0:
            return ""
        return f"{self.module.text.count(chr(10), 0, instruction.offset) + 1}: "

    def _run_batch(self, plan: Plan, arguments: Sequence[Value]) -> Value:
        """Evaluate a computation of scalars on whole arrays, which means once per element."""
        if not any(argument.ndim for argument in arguments):
            return self.run(plan, *arguments)
        dims = np.broadcast_shapes(*(argument.shape for argument in arguments))
        if not plan.is_elementwise:
            return self._run_each(plan, arguments, dims)
        self._burn()
        apply = partial(self._apply_batch, plan)
        result = walk(plan.computation, arguments, apply, plan.instructions)
        return mapped(lambda array: np.broadcast_to(array, dims), result)

    def _apply_batch(self, plan: Plan, instruction: Instruction, operands: list[Value]) -> Value:
        self._burn()
        step = plan.steps[instruction.name]
        op = step.op
        if instruction.opcode == "bitcast":  # it may change the element type
            op = self._ops["bitcast_convert"]
        elif instruction.opcode in _SAME_SCALAR:
            return operands[0]
        try:
            return as_arrays(call(op, instruction, operands, step.keywords, step.operand_shape))
        except (Unsupported, ArgumentError) as error:
            raise self._located(error, instruction) from error

    def _run_each(self, plan: Plan, arguments: Sequence[Value], dims: tuple[int, ...]) -> Value:
        """Evaluate a computation once per element, for loops and branches that differ between
        elements."""
        shape = plan.computation.root_instruction.shape
        shapes = shape.elements if isinstance(shape, TupleShape) else (shape,)
        results = [np.empty(dims, leaf.element_type.numpy) for leaf in leaves(shape)]
        whole = [np.broadcast_to(argument, dims) for argument in arguments]
        for index in np.ndindex(*dims):
            value = self.run(plan, *(np.asarray(array[index]) for array in whole))
            elements = value if isinstance(shape, TupleShape) else (value,)
            for result, element in zip(results, elements, strict=True):
                result[index] = element
        del shapes
        return tuple(results) if isinstance(shape, TupleShape) else results[0]


def is_scalar(computation: Computation) -> bool:
    """Test whether all parameters are scalars: such a computation may be called on batches."""
    shapes = [parameter.shape for parameter in computation.parameters]
    return bool(shapes) and all(
        isinstance(shape, ArrayShape) and not shape.rank and shape.element_type.is_array
        for shape in shapes
    )


def _is_effect(instruction: Instruction, effects: Mapping[str, bool]) -> bool:
    return (
        instruction.opcode in _EFFECTS
        or bool(instruction.attributes.get("custom_call_has_side_effect"))
        or any(effects[name] for name in called(instruction))
    )


def _checked_calls(module: Module) -> Mapping[str, bool]:
    """Map each computation to whether it has effects. Raises for calls nested too deep for Python's
    stack, and for calls of computations further down (recursion)."""
    depths: dict[str, int] = {}
    effects: dict[str, bool] = {}
    for computation in module.computations:
        callees = {name for i in computation.instructions for name in called(i)}
        if unknown := sorted(callees - depths.keys()):
            raise VerifyError(f"{computation.name} calls {unknown[0]}, which is not above it")
        depths[computation.name] = 1 + max((depths[name] for name in callees), default=0)
        if depths[computation.name] > _DEEPEST_CALLS:
            raise Unsupported(f"calls nest deeper than {_DEEPEST_CALLS} in {computation.name}")
        effects[computation.name] = any(_is_effect(i, effects) for i in computation.instructions)
    return effects


def checked(entry: Computation, arrays: Sequence[Value]) -> tuple[Value, ...]:
    """Convert arguments to values; ArgumentError names the first that does not fit its
    parameter."""
    parameters = entry.parameters
    if len(arrays) != len(parameters):
        raise ArgumentError(f"{len(parameters)} arguments are expected, {len(arrays)} were given")
    values = tuple(map(from_caller, arrays))
    for number, (parameter, value) in enumerate(zip(parameters, values, strict=True)):
        if not conforms(value, parameter.shape):
            raise ArgumentError(
                f"parameter {number} ({parameter.name}): expected {parameter.shape},"
                f" got {described(value)}"
            )
    return values
