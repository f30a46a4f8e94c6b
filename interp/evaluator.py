"""Evaluate a module: walk its computations with the NumPy function of each op.

Values are those of :mod:`interp.values`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from hlo.caller_values import as_given, described, require_count
from hlo.errors import ArgumentError, CollectiveError, Error, Unsupported
from hlo.module import Computation, Instruction, Module
from hlo.text.source_locations import located
from hlo.types import TupleShape, leaves
from hlo.verification.verify import verify
from hlo.walk import Op, column, follow
from interp.bounded_arrays import (
    any_bounds,
    filled,
    open_sizes_told,
)
from interp.call_graph import checked_calls, is_effect
from interp.feeds import Feeds, per_rank
from interp.observation import Collected, Observer, Watch, Watching
from interp.ops import random
from interp.ops.custom_call import registered
from interp.planner import Fuel, Instead, Meaning, Planner, is_scalar
from interp.prepared import Plan
from interp.ranks import Rank, Ranks, ranks_of, running
from interp.values import Value, as_arrays, broadcast, conforms, copied, from_caller, mapped, own


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
    watch: Watch | Iterable[str] | None = None,
) -> Any:
    """Evaluate the entry computation and return its result. VerifyError if the module is not valid.

    One array (a tuple of arrays for a tuple) per parameter: NumPy's type and sizes must be the
    parameter's; a bounded dimension takes any size up to its bound. ``seed`` starts the random
    number generator of ``rng``; ``fuel`` bounds the number of instructions that each rank evaluates
    (OutOfFuel). ``infeed`` gives the values that the instruction takes, in order;
    ``outfeed.append`` receives those that are outfed; ``from_host`` and ``to_host`` are the same by
    channel, for recv and send with ``is_host_transfer``. ``custom_calls`` are functions by target:
    of the operands (a tuple), the result's shape and the backend_config as text, giving the result.

    ``watch`` observes intermediate values. A function is called with each as a
    :class:`interp.Seen`, in the order of evaluation. For names of instructions (``add.2``, or
    ``body/add.2`` for that of one computation; ``[]`` for all of the entry) the return value is a
    pair: the result, and a dictionary from each name to the list of its values, one per evaluation.

    With several replicas or partitions, the arguments are one tuple of arrays per rank, the result
    is one result per rank, and so are the feeds and the watched values: rank ``replica * partitions
    + partition``. CollectiveError if ranks do not meet; ArgumentError if the module is made for
    another number of ranks.
    """
    verify(module)
    feeds = Feeds(infeed, outfeed, from_host, to_host)
    ranks = ranks_of(module, replicas, partitions, feeds)
    settings = Settings(seed, fuel, custom_calls or {})
    if watch is None:
        return evaluated(module, arguments, ranks, settings)
    if callable(watch):
        told: Watch = watch
        return evaluated(module, arguments, ranks, settings, lambda n: Watching(told, n))
    names = (watch,) if isinstance(watch, str) else watch
    found = Collected(module, names, ranks.size)
    result = evaluated(module, arguments, ranks, settings, lambda n: Watching(found, n))
    return result, found.values[0] if ranks.size == 1 else tuple(found.values)


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of an evaluation besides its arguments, as :func:`evaluate` takes them."""

    seed: int = 0
    fuel: int | None = None
    custom_calls: Mapping[str, Callable[..., Any]] = field(default_factory=dict)


def evaluated(
    module: Module,
    arguments: Sequence[Any],
    ranks: Ranks,
    settings: Settings,
    observer: Callable[[int], Observer] | None = None,
) -> Any:
    """Evaluate a verified module on all ranks; ``observer`` makes one observer per rank number."""
    each = (arguments,) if ranks.size == 1 else per_rank(ranks.size, arguments, "arguments")
    values = [checked(module.entry, arrays) for arrays in each]

    def on(rank: Rank) -> Value:
        seeing = None if observer is None else observer(rank.number)
        evaluation = Evaluation(module, settings.fuel, rank, observer=seeing)
        mine = values[rank.number]
        given = registered(settings.custom_calls)
        with given, running(rank):
            result = evaluation.result(mine, settings.seed)
        try:
            # Ranks share arrays: an all-reduce gives the same one to every member.
            return own(result) if ranks.size == 1 else copied(result)
        except MemoryError as error:
            shape = module.entry.root_instruction.shape
            raise Unsupported(f"the result {shape} does not fit into memory") from error

    results = ranks.run(on)
    return results[0] if ranks.size == 1 else tuple(results)


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
        tell_open: Callable[[str], None] | None = None,
        observer: Observer | None = None,
    ) -> None:
        """``ops`` replaces the functions of the opcodes, by function name, and ``instead`` that of
        single instructions; ``tell_open`` is called with the reason where bounded sizes have
        results that the language leaves open. ``observer`` is told of each computation and
        instruction."""
        self.module, self._tell_open = module, tell_open
        self._fuel = Fuel(fuel)
        self._effects = checked_calls(module)
        ops = column("interp.ops") if ops is None else ops
        meaning = Meaning(module, ops, instead, self.enter, self.has_effect, observer)
        self._planner = Planner(meaning, self._fuel, rank)
        self.is_bounded = any_bounds(module)

    def result(self, arguments: Sequence[Value], seed: int = 0) -> Value:
        """Evaluate the entry computation; ``seed`` starts the random numbers."""
        with np.errstate(all="ignore"), random.seeded(seed), open_sizes_told(self._tell_open):
            try:
                return self.run(self.plan(self.module.entry), *arguments)
            except RecursionError as error:
                # The caller may have used most of the stack, and observers take more of it.
                raise Unsupported("calls nest deeper than Python's stack has room for") from error

    def run(self, plan: Plan, *arguments: Value) -> Value:
        """Evaluate a computation on arguments, which are padded to its parameters' shapes."""
        self._fuel.burn()
        if self.is_bounded:
            shapes = (parameter.shape for parameter in plan.computation.parameters)
            arguments = tuple(map(filled, arguments, shapes))
        if plan.begins is not None:
            plan.begins(plan.computation, arguments)
        values = plan.values(arguments)
        begun = len(values)
        try:
            # Most instructions have one or two operands. To gather those in a list takes several
            # times as long as to name them, and loops of scalars evaluate millions.
            for compute, arity, first, second, operands, last_read in plan.visits:
                if arity == 2:
                    values.append(compute(values[first], values[second]))
                elif arity == 1:
                    values.append(compute(values[first]))
                else:
                    values.append(compute(*[values[slot] for slot in operands]))
                for slot in last_read:
                    values[slot] = None
        except (Unsupported, ArgumentError, CollectiveError, MemoryError) as error:
            # Every visit that ended has appended one value; the schedule has the constants first.
            done = len(plan.known) + len(values) - begun
            raise self._located(error, plan.schedule.visits[done].instruction) from error
        return values[plan.schedule.root]

    def enter(self, computation: Computation) -> Callable[..., Value]:
        """Make a callable of a computation, for ops that call it; it vectorises computations of
        scalars."""
        run = self._run_batch if is_scalar(computation) else self.run
        plan: Plan | None = None

        def entered(*arguments: Value) -> Value:
            nonlocal plan
            if plan is None:  # only now: what is never called may hold what nobody can do
                plan = self.plan(computation)
            return run(plan, *arguments)

        return entered

    def plan(self, computation: Computation) -> Plan:
        """Prepare a computation; later calls return the same plan."""
        return self._planner.plan(computation)

    def refuel(self) -> None:
        """Restore the full fuel."""
        self._fuel.refill()

    def has_effect(self, instruction: Instruction) -> bool:
        """Test for instructions that must be evaluated exactly once and in order, used or not."""
        return is_effect(instruction, self._effects)

    def apply(self, plan: Plan, instruction: Instruction, operands: list[Value]) -> Value:
        """Evaluate one instruction."""
        try:
            return plan.steps[instruction.name].compute(*operands)
        except (Unsupported, ArgumentError, CollectiveError, MemoryError) as error:
            raise self._located(error, instruction) from error

    def _located(self, error: Error | MemoryError, instruction: Instruction) -> Error:
        """Add the instruction to an error's message, unless it has one; turn MemoryError into
        Unsupported."""
        if isinstance(error, MemoryError):
            error = Unsupported(f"{instruction.shape} does not fit into memory")
        return located(error, self.module, instruction)

    def _run_batch(self, plan: Plan, *arguments: Value) -> Value:
        """Evaluate a computation of scalars elementwise on whole arrays."""
        for argument in arguments:
            if argument.ndim:
                break
        else:
            return self.run(plan, *arguments)
        dims = _common(arguments)
        if not plan.is_elementwise:
            return self._run_each(plan, arguments, dims)
        self._fuel.burn()
        result = follow(plan.schedule, arguments, partial(self._apply_batch, plan))
        # A constant result, or one of few operands, has not met the other operands' sizes.
        return mapped(partial(broadcast, dims=dims), result)

    def _apply_batch(self, plan: Plan, instruction: Instruction, operands: list[Value]) -> Value:
        self._fuel.burn()
        compute = plan.steps[instruction.name].on_batches
        assert compute is not None
        try:
            return as_arrays(compute(*operands))
        except (Unsupported, ArgumentError) as error:
            raise self._located(error, instruction) from error

    def _run_each(self, plan: Plan, arguments: Sequence[Value], dims: tuple[int, ...]) -> Value:
        """Evaluate a computation once per element, as loops and branches may go different ways."""
        shape = plan.computation.root_instruction.shape
        results = [np.empty(dims, leaf.element_type.numpy) for leaf in leaves(shape)]
        whole = [np.broadcast_to(argument, dims) for argument in arguments]
        for index in np.ndindex(*dims):
            value = self.run(plan, *(np.asarray(array[index]) for array in whole))
            elements = value if isinstance(shape, TupleShape) else (value,)
            for result, element in zip(results, elements, strict=True):
                result[index] = element
        return tuple(results) if isinstance(shape, TupleShape) else results[0]


def _common(arrays: Sequence[Value]) -> tuple[int, ...]:
    """Return the sizes that arrays are broadcast to. Mostly they have them already, and steps of a
    fold are many."""
    dims: tuple[int, ...] = arrays[0].shape
    if all(array.shape == dims for array in arrays):
        return dims
    return np.broadcast_shapes(*(array.shape for array in arrays))


def checked(entry: Computation, arrays: Sequence[Value]) -> tuple[Value, ...]:
    """Convert arguments to values; ArgumentError names the first that does not fit its
    parameter."""
    parameters = entry.parameters
    require_count(len(parameters), arrays)
    values: list[Value] = []
    for number, (parameter, given) in enumerate(zip(parameters, arrays, strict=True)):
        what, shape = f"parameter {number} ({parameter.name})", parameter.shape
        value = from_caller(as_given(what, given, shape))
        if not conforms(value, shape):
            raise ArgumentError(f"{what}: expected {shape}, got {described(given)}")
        values.append(value)
    return tuple(values)
