"""Prepare the computations of a module for one evaluation.

All that is fixed during an evaluation is decided here, not at each step: whether instructions take
fuel, whether ranks meet, which sizes are bounded, which instructions have another meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from hlo.errors import Error, OutOfFuel, Unsupported, VerifyError
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import CALLS, ELEMENTWISE, SAME_SCALAR, STRUCTURAL, having, of_family
from hlo.text.source_locations import line_of
from hlo.types import ArrayShape, Shape, leaves
from hlo.walk import Op, bound, called, keywords, live, op_of, scheduled
from interp.bounded_arrays import Sizes, agreed, filled, results_of, sizes_of
from interp.many_dimensions import within_limits
from interp.observation import Observer, observed_computations
from interp.prepared import (
    Compute,
    Plan,
    Step,
    checked_arrays,
    is_constant,
    meets_ranks,
    regrouped,
    visits,
)
from interp.ranks import Rank
from interp.values import Value, as_arrays, conforms, described

_SAME_SCALAR = having(SAME_SCALAR)
# What a scalar computation may consist of, besides calls, to be evaluated on whole arrays at once.
# A map of scalars is a call.
_ELEMENT_BY_ELEMENT = (
    of_family(ELEMENTWISE) | having(STRUCTURAL) | _SAME_SCALAR | {"bitcast-convert"}
)
_CALLS = having(CALLS) | {"map"}

# What is done in place of an op, at an instruction of a computation: the op itself mostly.
Instead = Callable[[Computation, Instruction, Op], Op]


class Fuel:
    """A budget of instructions and computations to evaluate; ``amount`` None is unlimited."""

    def __init__(self, amount: int | None) -> None:
        self.is_limited = amount is not None
        self.left = self._full = max(0, amount or 0)

    def refill(self) -> None:
        """Restore the full fuel."""
        self.left = self._full

    def burn(self) -> None:
        """Take one unit; OutOfFuel if none is left, never if fuel is unlimited."""
        if not self.is_limited:
            return
        if not self.left:
            raise OutOfFuel("the evaluation used up its fuel; does the program end?")
        self.left -= 1


@dataclass(frozen=True, slots=True)
class Meaning:
    """The semantics of a module's instructions: functions of the opcodes, by function name,
    replacements of single ones (``instead``), and ``enter``, which makes callables of
    computations."""

    module: Module
    ops: Mapping[str, Op]
    instead: Instead | None
    enter: Callable[[Computation], Callable[..., Value]]
    has_effect: Callable[[Instruction], bool]
    observer: Observer | None = None


class Planner:
    """Prepares computations, each on first use, and caches their plans."""

    def __init__(self, meaning: Meaning, fuel: Fuel, rank: Rank | None) -> None:
        self._meaning, self._fuel, self._rank = meaning, fuel, rank
        self._plans: dict[str, Plan] = {}
        is_observed = meaning.observer is not None
        self._observed = observed_computations(meaning.module) if is_observed else frozenset()

    def plan(self, computation: Computation) -> Plan:
        """Prepare a computation; Unsupported for an op that the interpreter does not implement."""
        plan = self._plans.get(computation.name)
        if plan is None:
            plan = self._plans[computation.name] = self._planned(computation)
        return plan

    def _planned(self, computation: Computation) -> Plan:
        names = live(computation, self._meaning.has_effect)
        instructions = tuple(
            i for i in computation.instructions if i.name in names and i.opcode != "parameter"
        )
        shapes = {i.name: i.shape for i in computation.instructions}
        in_batches, observer = is_scalar(computation), self._meaning.observer
        steps = {
            i.name: self._step(computation, i, [shapes[name] for name in i.operands], in_batches)
            for i in instructions
        }
        parameters = tuple(p for p in computation.parameters if p.name in names)
        # Fuel and observers count each of them.
        is_each = self._fuel.is_limited or computation.name in self._observed
        known = {} if is_each else self._known(steps)
        # Constants follow the parameters, so that Plan.values fills in the first slots by itself.
        order = [*parameters, *(steps[name].instruction for name in known)]
        order += [i for i in instructions if i.name not in known]
        schedule = scheduled(computation, order)
        return Plan(
            computation,
            parameters + instructions,
            steps,
            in_batches and all(map(self._is_elementwise, instructions)),
            schedule,
            tuple(known.values()),
            visits(schedule, steps, [i.shape for i in order], len(known)),
            observer.begins if observer and computation.name in self._observed else None,
        )

    def _known(self, steps: Mapping[str, Step]) -> dict[str, Value]:
        """Map constants to their values, which then need no step at each run."""
        known: dict[str, Value] = {}
        for name, step in steps.items():
            if is_constant(step.op):
                with suppress(Error):
                    known[name] = step.compute()
        return known

    def _step(
        self,
        computation: Computation,
        instruction: Instruction,
        operand_shapes: list[Shape],
        in_batches: bool,
    ) -> Step:
        meaning = self._meaning
        try:
            op = op_of(meaning.ops, instruction, "the interpreter")
        except Unsupported as error:
            raise Unsupported(f"{line_of(meaning.module, instruction)}{error}") from error
        if meaning.instead is not None:
            op = meaning.instead(computation, instruction, op)
        given = keywords(meaning.module, instruction, meaning.enter)
        function = within_limits(
            bound(op, instruction, given, operand_shapes), instruction, operand_shapes
        )
        results = results_of(meaning.module, instruction)
        sizes = sizes_of(instruction, operand_shapes, results)
        # With bounds, an element may have to be filled up to the size that this place declares.
        compute = None if sizes else regrouped(op, instruction, operand_shapes, given)
        if compute is None:
            compute = self._checked(function, instruction, sizes)
        if is_constant(op):
            with suppress(Error):  # an elided one is an error where it is needed
                compute = partial(_first, compute())
        compute = self._counted(compute, computation, instruction, op)
        if meaning.observer is not None and computation.name in self._observed:
            compute = meaning.observer.observed(computation, instruction, compute)
        if not in_batches:
            return Step(instruction, op, compute, None)
        if instruction.opcode == "bitcast":  # it may change the element type
            function = bound(meaning.ops["bitcast_convert"], instruction, given, operand_shapes)
        # Of one scalar they are the identity. Their own functions would take a batch f32[1000]
        # for an operand of the declared rank, as `reshape` to f32[] would.
        elif instruction.opcode in _SAME_SCALAR:
            function = _first
        return Step(instruction, op, compute, function)

    def _checked(self, function: Compute, instruction: Instruction, sizes: Sizes | None) -> Compute:
        """Wrap a function to return arrays of the declared shape, or raise VerifyError."""
        shape = instruction.shape

        def finished(value: Value) -> Value:
            value = as_arrays(value)
            if sizes is not None:
                value = filled(value, shape)
            if not conforms(value, shape):
                raise VerifyError(
                    f"{line_of(self._meaning.module, instruction)}%{instruction.name} ="
                    f" {instruction.opcode}: the result is {described(value)}, not {shape} as"
                    " declared"
                )
            return value

        if sizes is None:
            return checked_arrays(function, shape, finished)
        return lambda *operands: finished(function(*agreed(sizes, list(operands))))

    def _counted(
        self, compute: Compute, computation: Computation, instruction: Instruction, op: Op
    ) -> Compute:
        """Wrap an instruction's function to burn fuel, if that is limited, and to record the
        instruction with its rank, if another rank or an error message may ask for it."""
        rank, fuel, is_limited = self._rank, self._fuel, self._fuel.is_limited
        if rank is not None and (rank.ranks.size > 1 or meets_ranks(op)):
            name = computation.name

            def here(*operands: Value) -> Value:
                if is_limited:
                    fuel.burn()
                rank.at(name, instruction)
                return compute(*operands)

            return here
        if not is_limited:
            return compute

        def counted(*operands: Value) -> Value:
            if not fuel.left:
                fuel.burn()  # raises
            fuel.left -= 1
            return compute(*operands)

        return counted

    def _is_elementwise(self, instruction: Instruction) -> bool:
        if any(leaf.rank for leaf in leaves(instruction.shape)):
            return False
        if instruction.opcode in _CALLS:
            callees = map(self._meaning.module.computation, called(instruction))
            return all(self.plan(callee).is_elementwise for callee in callees)
        return instruction.opcode in _ELEMENT_BY_ELEMENT


def _first(operand: Value, *others: Value) -> Value:
    return operand


def is_scalar(computation: Computation) -> bool:
    """Test whether all parameters are scalars, so that the computation may be vectorised."""
    shapes = [parameter.shape for parameter in computation.parameters]
    return bool(shapes) and all(
        isinstance(shape, ArrayShape) and not shape.rank and shape.element_type.is_array
        for shape in shapes
    )
