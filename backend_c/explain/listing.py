"""Hold a program beside what became of it: instructions, kernels, C, and the life of each array."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from backend_c.explain.describer import written_buffers, written_origins
from backend_c.lower.buffers import workspace_lifetimes
from backend_c.lower.plan import Buffer, Launch, Plan, Repeat, Step, in_order, inner_steps
from backend_c.render.translation_units import Program
from hlo.module import Module
from hlo.passes.fusion_reasons import Groups

# Of rendered C alone: a kernel is a function without a result, whose brace closes it at column 1.
_FUNCTION = re.compile(
    r"^(?:static|__attribute__\S+) void (kernel_\d+)\([^;{]*\{\n.*?^\}\n", re.M | re.S
)


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Hold the place in the workspace of the array that an instruction stores, or needs meanwhile.

    ``first`` and ``last`` are the numbers of the steps between which it must hold its value,
    ``offset`` and ``bytes`` say where. Names are empty where no step writes the array by itself.
    """

    computation: str
    instruction: str
    offset: int
    bytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, repr=False)
class Listing:
    """Hold the stages of one compilation, for whoever shows them side by side.

    ``before`` is the module as fusion saw it, whose names :class:`Row` uses; ``groups`` is what
    fusion decided, ``after`` what was lowered. ``functions`` names the C function of each step,
    empty for steps that call none, and ``texts`` has the C of each function. ``lifetimes`` are the
    arrays of the workspace by their first step.
    """

    before: Module
    groups: Groups
    after: Module
    functions: tuple[str, ...]
    texts: Mapping[str, str]
    lifetimes: tuple[Lifetime, ...]


def listing(before: Module, groups: Groups, after: Module, plan: Plan, program: Program) -> Listing:
    """Return the listing of a compilation from its stages."""
    functions = tuple(
        program.kernel_names[step.kernel] if isinstance(step, Launch) else ""
        for _, step in in_order(plan.steps)
    )
    texts = {
        found[1]: found[0].replace("HLO_RESTRICT ", "")
        for text in program.sources.values()
        for found in _FUNCTION.finditer(text)
    }
    return Listing(before, groups, after, functions, texts, tuple(_lifetimes(plan, program)))


def _lifetimes(plan: Plan, program: Program) -> Iterator[Lifetime]:
    """Yield the life of each array of the workspace, by the number of its first step."""
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
    """Return the number of the step at each tick of the clock of lifetimes, which counts from one
    and ticks once more at the end of each loop."""
    ticks = [0]
    count = 0

    def visit(step: Step) -> None:
        nonlocal count
        ticks.append(count)
        count += 1
        for inner in inner_steps(step):
            visit(inner)
        if isinstance(step, Repeat):
            ticks.append(count - 1)

    for step in plan.steps:
        visit(step)
    return ticks
