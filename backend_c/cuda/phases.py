"""Split kernels for CUDA into phases, each a launch: at every loop that all threads share.

Threads of different blocks can only wait for each other between launches, so a kernel that packs,
then multiplies, becomes two; what it does before, between or after, once, is done by launches of
their own. Values that no phase changes are rematerialised in each phase that needs them; those that
one phase computes for others lie in memory in between. The phases of a loop of kind "launches" are
launched once for each trip, whose number they read from memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple

import numpy as np

from backend_c.cuda.block_loops import with_block_loops
from backend_c.cuda.threads import is_independent, mapped
from backend_c.cuda.walks import changed, declared, named
from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    INDEX,
    Array,
    Kernel,
    Let,
    Load,
    Loop,
    Mutable,
    Statement,
    Store,
    Variable,
    is_mutable,
    subexpressions,
)
from backend_c.lower.plan import Buffer, Launch, Multiply, Plan, Step, map_steps
from hlo.types import S64, ArrayShape

_TRIP = Array("trip", S64, 1)  # the number of a trip, an input of the kernels of its phases


def split(plan: Plan) -> Plan:
    """Split every kernel of a plan where all blocks must have finished."""
    plan = with_block_loops(plan)
    result = replace(plan, kernels=[], buffers=[*plan.buffers], constants=[*plan.constants])
    trips = _Trips(result)
    parts: list[tuple[list[_Part], tuple[Array, ...]]] = []
    for kernel in plan.kernels:
        phases, kept = _phases(kernel)
        numbered = [_Part(len(result.kernels) + n, one.loop) for n, one in enumerate(phases)]
        result.kernels.extend(mapped(one.kernel) for one in phases)
        parts.append((numbered, kept))

    def relaunched(step: Step) -> tuple[Step, ...]:
        if not isinstance(step, Launch):
            return (step,)
        numbered, kept = parts[step.kernel]
        places = tuple(result.buffer(ArrayShape(array.element_type, (1,))) for array in kept)
        product, origin = step.product, step.origin
        step = replace(step, scratch=(*step.scratch, *places), product=None)
        launches = tuple(trips.launched(step, numbered))
        return launches if product is None else (Multiply(product, launches, origin),)

    return replace(result, steps=map_steps(plan.steps, relaunched))


class _Part(NamedTuple):
    """Name the kernel of a phase, and the loop over launches that encloses it."""

    kernel: int
    loop: Loop | None


@dataclass
class _Trips:
    """Hold constants 0, 1, 2, … of a plan: the trip numbers of loops over launches."""

    plan: Plan
    buffers: list[Buffer] = field(default_factory=list)

    def launched(self, step: Launch, parts: Sequence[_Part]) -> Iterator[Step]:
        """Yield the launches of the phases of a launch's kernel, those in a loop once per trip."""
        for loop, group in groupby(parts, key=lambda part: part.loop):
            own = [part.kernel for part in group]
            if loop is None:
                yield from (replace(step, kernel=number) for number in own)
                continue
            for trip in range(ix.bounds(loop.extent)[1]):
                inputs = (self._number(trip), *step.inputs)
                yield from (replace(step, kernel=number, inputs=inputs) for number in own)

    def _number(self, trip: int) -> Buffer:
        """Return the constant with the number of a trip."""
        for number in range(len(self.buffers), trip + 1):
            buffer = self.plan.buffer(ArrayShape(S64, (1,)))
            self.plan.constants.append((buffer, np.array([number], np.int64)))
            self.buffers.append(buffer)
        return self.buffers[trip]


class _OfPhase(NamedTuple):
    """Hold the kernel of a phase, and the loop over launches that encloses it."""

    kernel: Kernel
    loop: Loop | None


@dataclass
class _Phase:
    """Hold the statements of one launch; ``loop`` is the enclosing loop of kind "launches"."""

    statements: list[Statement] = field(default_factory=list)
    loop: Loop | None = None

    @property
    def declared(self) -> set[str]:
        return {name for name in map(declared, self.statements) if name is not None}

    @property
    def named(self) -> set[str]:
        return {name for statement in self.statements for name in named(statement)}

    @property
    def changed(self) -> set[str]:
        return {name for statement in self.statements for name in changed(statement)}


def _phases(kernel: Kernel) -> tuple[list[_OfPhase], tuple[Array, ...]]:
    """Split a kernel into those of its phases; return also arrays of values live across phases."""
    flat = list(_with_loops(kernel.body))
    floating = {s.variable.name: s for s, _ in flat if isinstance(s, Let) and _floats(s)}
    phases = [_Phase()]
    for statement, loop in flat:
        if isinstance(statement, Let) and statement.variable.name in floating:
            continue
        if is_independent(statement):
            phases += [_Phase([statement], loop=loop), _Phase(loop=loop)]
        elif phases[-1].loop is loop:
            phases[-1].statements.append(statement)
        else:
            phases.append(_Phase([statement], loop=loop))
    phases = _joined([phase for phase in phases if phase.statements])
    kept = _kept(phases, len(kernel.scratch))
    scratch = (*kernel.scratch, *(array for _, array in kept))
    kernels = []
    for phase in phases:
        needed = _needed(phase.statements, floating)
        # By identity: equal statements, as of a variable that is set to 0 twice, may be of
        # different phases.
        own = {id(statement) for statement in (*phase.statements, *needed)}
        # In the order of the text: a value may be read from what the phase has written before.
        body = [statement for statement, _ in flat if id(statement) in own]
        body = [*_restored(phase, kept), *body, *_saved(phase, kept)]
        inputs = kernel.inputs
        if phase.loop is not None:
            inputs = (_TRIP, *inputs)
            body.insert(0, Let(phase.loop.variable, Load(_TRIP, ix.constant(0))))
        made = replace(kernel, inputs=inputs, body=tuple(body), scratch=scratch)
        kernels.append(_OfPhase(made, phase.loop))
    return kernels or [_OfPhase(kernel, None)], tuple(array for _, array in kept)


def _with_loops(body: Sequence[Statement]) -> Iterator[tuple[Statement, Loop | None]]:
    """Yield statements with the enclosing loop of kind "launches", whose body is flattened."""
    for statement in body:
        if isinstance(statement, Loop) and statement.kind == "launches":
            yield from ((inner, statement) for inner in statement.body)
        else:
            yield statement, None


def _floats(let: Let) -> bool:
    """Return whether a let may be rematerialised in later phases: it reads nothing mutable."""
    return not any(map(is_mutable, subexpressions(let.value)))


def _needed(body: Sequence[Statement], floating: dict[str, Let]) -> list[Statement]:
    """Return the lets of other phases that statements depend on, transitively."""
    needed: dict[str, Let] = {}
    waiting = [name for statement in body for name in named(statement)]
    while waiting:
        name = waiting.pop()
        if name in floating and name not in needed:
            needed[name] = floating[name]
            waiting.extend(named(floating[name]))
    return list(needed.values())


def _joined(phases: list[_Phase]) -> list[_Phase]:
    """Join phases where one needs more than numbers of another: arrays, opaque or changing
    values."""
    for first, phase in enumerate(phases):
        for last in range(len(phases) - 1, first, -1):
            if any(not _can_be_kept(name, phase, phases[first + 1 :]) for name in
                   phase.declared & phases[last].named):  # fmt: skip
                joined = phases[first : last + 1]
                assert all(one.loop is None for one in joined), "a kernel keeps numbers for trips"
                whole = [s for one in joined for s in one.statements]
                return _joined([*phases[:first], _Phase(whole), *phases[last + 1 :]])
    return phases


def _can_be_kept(name: str, phase: _Phase, later: Sequence[_Phase]) -> bool:
    """Return whether a name can be saved between launches: a number that no later phase changes."""
    variable = _variable(name, phase)
    is_number = variable is not None and variable.type.kind != "opaque"
    return is_number and not any(name in one.changed for one in later)


def _variable(name: str, phase: _Phase) -> Variable | None:
    """Return the variable that a phase declares under a name; None for an array."""
    for statement in phase.statements:
        if isinstance(statement, Let | Mutable) and statement.variable.name == name:
            return statement.variable
    return None


def _kept(phases: Sequence[_Phase], first: int) -> list[tuple[Variable, Array]]:
    """Return the variables that are live across phases, each with the scratch array that saves
    it."""
    kept: list[tuple[Variable, Array]] = []
    for number, phase in enumerate(phases):
        later = {name for other in phases[number + 1 :] for name in other.named}
        for name in (declared(s) for s in phase.statements):
            variable = _variable(name, phase) if name in later and name is not None else None
            if variable is not None:
                element_type = S64 if variable.type is INDEX else variable.type
                array = Array(f"s{first + len(kept)}", element_type, 1, mutable=True)
                kept.append((variable, array))
    return kept


def _restored(phase: _Phase, kept: Sequence[tuple[Variable, Array]]) -> Iterator[Statement]:
    """Yield the loads of variables that an earlier phase saved."""
    for variable, array in kept:
        if variable.name in phase.named and variable.name not in phase.declared:
            load = Load(array, ix.constant(0))
            yield Mutable(variable, load) if variable.mutable else Let(variable, load)


def _saved(phase: _Phase, kept: Sequence[tuple[Variable, Array]]) -> Iterator[Statement]:
    """Yield the stores of variables that later phases need."""
    for variable, array in kept:
        if variable.name in phase.declared:
            yield Store(array, ix.constant(0), variable)
