"""Show a program beside its compilation: instructions, kernels, C, and the live ranges of
arrays."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from backend_c.lower.buffers import workspace_lifetimes
from backend_c.lower.matrix_product import LIBRARY
from backend_c.lower.plan import (
    Buffer,
    Launch,
    Multiply,
    Plan,
    Repeat,
    Step,
    in_order,
    inner_steps,
)
from backend_c.profiles.computed_lines import (
    InstructionNames,
    Named,
    computed_lines,
    with_lines_of_users,
)
from backend_c.profiles.describer import joined, members, written_buffers, written_origins
from backend_c.render.marked_statements import unmarked
from backend_c.render.statements import LAUNCH_BOUNDS
from backend_c.render.translation_units import Program
from hlo.module import Module
from hlo.passes.fusion_reasons import Groups
from hlo.types import array_leaves

# Of rendered C alone: a kernel is a function without a result, whose brace closes it at column 1.
_FUNCTION = re.compile(
    rf"^[^\n;{{]*\bvoid {LAUNCH_BOUNDS}(kernel_\d+)\([^;{{]*\{{\n.*?^\}}\n", re.M | re.S
)


@dataclass(frozen=True, slots=True)
class Called:
    """Describe the code of a step.

    ``function`` is its C function, empty if it calls none; ``computes`` are the instructions in it.
    ``arrays`` maps the function's arrays to the instruction that stored them last, where known: a
    parameter, or the result of a step. ``lines`` maps instructions to lines of the function, from
    0; one without lines of its own, as the broadcast of a constant, has those of its users.
    ``library`` computes the step where it is found, in place of the function.
    """

    function: str
    computes: tuple[Named, ...]
    arrays: Mapping[str, Named]
    lines: Mapping[Named, tuple[int, ...]]
    library: str = ""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Hold the live range and the place in the workspace of an array.

    It is stored, or needed as scratch, by an instruction; the names are empty where no step writes
    it by itself. ``first`` and ``last`` are the numbers of the steps between which it must hold its
    value.
    """

    computation: str
    instruction: str
    offset: int
    bytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, repr=False)
class Listing:
    """Hold the stages of one compilation, to be shown side by side.

    ``before`` is the module that the fusion pass was given, whose names :class:`Row` uses;
    ``groups`` are the fusions chosen, ``after`` is the module that was lowered. ``steps`` are in
    the order of their numbers, and ``texts`` has the C of each function. ``lifetimes`` are the
    arrays of the workspace by their first step.
    """

    before: Module
    groups: Groups
    after: Module
    steps: tuple[Called, ...]
    texts: Mapping[str, str]
    lifetimes: tuple[Lifetime, ...]


def listing(
    before: Module,
    groups: Groups,
    after: Module,
    plan: Plan,
    program: Program,
    marked: Mapping[str, str],
) -> Listing:
    """Build the listing of a compilation from its stages and its marked sources.

    Marks are those of :mod:`backend_c.render.marked_statements`.
    """
    functions = {
        found[1]: unmarked(found[0].replace("HLO_RESTRICT ", ""))
        for text in marked.values()
        for found in _FUNCTION.finditer(text)
    }
    steps = [*_called(before, groups, plan, program)]
    names = InstructionNames(before, groups, after)
    operands = {
        Named(c.name, i.name): i.operands for c in before.computations for i in c.instructions
    }
    for number, step in enumerate(_with_code(plan)):
        called = steps[number]
        if isinstance(step, Launch) and called.function in functions:
            origins, launches = plan.kernels[step.kernel].origins, joined(step.origin)
            own = computed_lines(*functions[called.function], origins, launches, names)
            lines = with_lines_of_users(own, called.computes, operands)
            steps[number] = replace(called, lines=lines)
    texts = {name: text for name, (text, _) in functions.items()}
    return Listing(before, groups, after, tuple(steps), texts, tuple(_lifetimes(plan, program)))


def _called(before: Module, groups: Groups, plan: Plan, program: Program) -> Iterator[Called]:
    """Yield the description of each step's code, in order."""
    computations = {c.name: c for c in before.computations}
    stored, first = _parameters(before, plan), _first_stores(plan)
    products = _of_products(plan)
    for step in _with_code(plan):
        computes = [
            Named(origin.computation, name)
            for origin in joined(step.origin)
            for name in members(origin, groups, computations)
        ]
        function, arrays = "", {}
        if isinstance(step, Launch):
            kernel, function = plan.kernels[step.kernel], program.kernel_names[step.kernel]
            pairs = [*zip(kernel.inputs, step.inputs), *zip(kernel.outputs, step.outputs)]
            for buffer, origin in zip(step.outputs, written_origins(step), strict=False):
                first[buffer] = Named(origin.computation, origin.instruction)
            known = {array.name: stored.get(b) or first.get(b) for array, b in pairs}
            arrays = {name: named for name, named in known.items() if named is not None}
        library = LIBRARY if isinstance(step, Launch) and step.kernel in products else ""
        yield Called(function, tuple(dict.fromkeys(computes)), arrays, {}, library)


def _with_code(plan: Plan) -> Iterator[Step]:
    """Yield the steps in order; of products of matrices the launches alone, whose code there is."""
    return (step for _, step in in_order(plan.steps) if not isinstance(step, Multiply))


def _of_products(plan: Plan) -> set[int]:
    """Return the kernels that are launched where a library multiplies no matrices."""
    inner = (one for _, step in in_order(plan.steps) if isinstance(step, Multiply)
             for one in step.launches)  # fmt: skip
    return {one.kernel for one in inner if isinstance(one, Launch)}


def _parameters(before: Module, plan: Plan) -> dict[Buffer, Named]:
    """Map each argument buffer to the parameter that it is, or is part of."""
    entry = before.entry
    names = (p.name for p in entry.parameters for _ in array_leaves(p.shape))
    return {b: Named(entry.name, name) for b, name in zip(plan.arguments, names, strict=True)}


def _first_stores(plan: Plan) -> dict[Buffer, Named]:
    """Map each buffer to the instruction that stores it first.

    A loop reads that in its first trip, from a buffer that it stores later.
    """
    found: dict[Buffer, Named] = {}
    for _, step in in_order(plan.steps):
        for buffer, origin in zip(written_buffers(step), written_origins(step), strict=False):
            found.setdefault(buffer, Named(origin.computation, origin.instruction))
    return found


def _lifetimes(plan: Plan, program: Program) -> Iterator[Lifetime]:
    """Yield the live range of each array of the workspace, ordered by first step."""
    lives, steps = workspace_lifetimes(plan), _step_numbers(plan)
    stores: dict[Buffer, tuple[str, str]] = {}
    for _, step in in_order(plan.steps):
        for buffer, origin in zip(written_buffers(step), written_origins(step), strict=False):
            stores.setdefault(buffer, (origin.computation, origin.instruction))
        for buffer in step.scratch if isinstance(step, Launch) else ():
            stores[buffer] = (step.origin.computation, step.origin.instruction)
    for buffer, (first, last) in sorted(lives.items(), key=lambda life: (life[1], life[0].number)):
        end = steps[int(last)] if last < len(steps) else steps[-1]
        names = stores.get(buffer, ("", ""))
        yield Lifetime(*names, program.places[buffer].offset, buffer.bytes, steps[first], end)


def _step_numbers(plan: Plan) -> list[int]:
    """Map the clock of :func:`backend_c.lower.buffers.lifetimes` to step numbers.

    The clock counts from one, and ticks once more at the end of each loop.
    """
    ticks = [0]
    count = 0

    def visit(step: Step) -> None:
        nonlocal count
        ticks.append(count)
        count += not isinstance(step, Multiply)
        for inner in inner_steps(step):
            visit(inner)
        if isinstance(step, Repeat):
            ticks.append(count - 1)

    for step in plan.steps:
        visit(step)
    return ticks
