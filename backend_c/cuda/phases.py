"""Split kernels for CUDA: a launch for each loop that all threads share, and what is between them.

Threads of different blocks can only wait for each other between launches, so a kernel that packs,
then multiplies, becomes two; what it does before, between or after, once, is done by launches of
their own. Values that no phase changes are computed again in each phase that needs them; those that
one phase computes for others lie in memory in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

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
    Mutable,
    Statement,
    Store,
    Variable,
    is_mutable,
    subexpressions,
)
from backend_c.lower.plan import Launch, Plan, Step, map_steps
from hlo.types import S64, ArrayShape


def split(plan: Plan) -> Plan:
    """Return the plan with every kernel split where all blocks must have finished."""
    plan = with_block_loops(plan)
    result = replace(plan, kernels=[], buffers=[*plan.buffers])
    parts: list[tuple[range, tuple[Array, ...]]] = []
    for kernel in plan.kernels:
        phases, kept = _phases(kernel)
        first = len(result.kernels)
        result.kernels.extend(map(mapped, phases))
        parts.append((range(first, len(result.kernels)), kept))

    def relaunched(step: Step) -> tuple[Step, ...]:
        if not isinstance(step, Launch):
            return (step,)
        numbers, kept = parts[step.kernel]
        places = tuple(result.buffer(ArrayShape(array.element_type, (1,))) for array in kept)
        scratch = (*step.scratch, *places)
        return tuple(replace(step, kernel=number, scratch=scratch) for number in numbers)

    return replace(result, steps=map_steps(plan.steps, relaunched))


@dataclass
class _Phase:
    """Hold the statements of a launch; ``is_shared``: they are one loop that all threads share."""

    statements: list[Statement] = field(default_factory=list)
    is_shared: bool = False

    @property
    def declared(self) -> set[str]:
        return {name for name in map(declared, self.statements) if name is not None}

    @property
    def named(self) -> set[str]:
        return {name for statement in self.statements for name in named(statement)}

    @property
    def changed(self) -> set[str]:
        return {name for statement in self.statements for name in changed(statement)}


def _phases(kernel: Kernel) -> tuple[list[Kernel], tuple[Array, ...]]:
    """Return the kernels of a kernel's phases in order, and arrays of values that they keep."""
    floating = {s.variable.name: s for s in kernel.body if isinstance(s, Let) and _floats(s)}
    phases = [_Phase()]
    for statement in kernel.body:
        if isinstance(statement, Let) and statement.variable.name in floating:
            continue
        if is_independent(statement):
            phases += [_Phase([statement], is_shared=True), _Phase()]
        else:
            phases[-1].statements.append(statement)
    phases = _joined([phase for phase in phases if phase.statements])
    kept = _kept(phases, len(kernel.scratch))
    scratch = (*kernel.scratch, *(array for _, array in kept))
    kernels = []
    for phase in phases:
        needed = _needed(phase.statements, floating)
        own = {id(statement) for statement in (*phase.statements, *needed)}
        # In the order of the text: a value may be read from what the phase has written before.
        body = [statement for statement in kernel.body if id(statement) in own]
        body = [*_restored(phase, kept), *body, *_saved(phase, kept)]
        kernels.append(replace(kernel, body=tuple(body), scratch=scratch))
    return kernels or [kernel], tuple(array for _, array in kept)


def _floats(let: Let) -> bool:
    """Return whether a value is the same in every phase after its place."""
    return not any(map(is_mutable, subexpressions(let.value)))


def _needed(body: Sequence[Statement], floating: dict[str, Let]) -> list[Statement]:
    """Return the values of other phases that statements need, and those that these need."""
    needed: dict[str, Let] = {}
    waiting = [name for statement in body for name in named(statement)]
    while waiting:
        name = waiting.pop()
        if name in floating and name not in needed:
            needed[name] = floating[name]
            waiting.extend(named(floating[name]))
    return list(needed.values())


def _joined(phases: list[_Phase]) -> list[_Phase]:
    """Join phases between which more than numbers would have to be kept."""
    for first, phase in enumerate(phases):
        for last in range(len(phases) - 1, first, -1):
            if any(not _can_be_kept(name, phase, phases[first + 1 :]) for name in
                   phase.declared & phases[last].named):  # fmt: skip
                whole = [s for one in phases[first : last + 1] for s in one.statements]
                return _joined([*phases[:first], _Phase(whole), *phases[last + 1 :]])
    return phases


def _can_be_kept(name: str, phase: _Phase, later: Sequence[_Phase]) -> bool:
    """Return whether a number can be kept: no opaque value, none that later phases change."""
    variable = _variable(name, phase)
    is_number = variable is not None and variable.type.kind != "opaque"
    return is_number and not any(name in one.changed for one in later)


def _variable(name: str, phase: _Phase) -> Variable | None:
    """Return the variable of a name that a phase declares; None for an array."""
    for statement in phase.statements:
        if isinstance(statement, Let | Mutable) and statement.variable.name == name:
            return statement.variable
    return None


def _kept(phases: Sequence[_Phase], first: int) -> list[tuple[Variable, Array]]:
    """Return the values that later phases need, each with the array that keeps it."""
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
    """Yield the declarations of values that an earlier phase kept."""
    for variable, array in kept:
        if variable.name in phase.named and variable.name not in phase.declared:
            load = Load(array, ix.constant(0))
            yield Mutable(variable, load) if variable.mutable else Let(variable, load)


def _saved(phase: _Phase, kept: Sequence[tuple[Variable, Array]]) -> Iterator[Statement]:
    """Yield the stores of values that later phases need."""
    for variable, array in kept:
        if variable.name in phase.declared:
            yield Store(array, ix.constant(0), variable)
