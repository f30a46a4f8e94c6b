"""Run passes, lowering and rendering, and keep each intermediate result for explanations."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from backend_c.cuda import phases
from backend_c.ir.settings import Settings
from backend_c.lower.lowering import lower
from backend_c.lower.plan import Plan
from backend_c.profiles.listing import Listing, listing
from backend_c.render.dialect import CUDA, OPENMP, Dialect
from backend_c.render.distinct_kernels import DistinctKernels
from backend_c.render.marked_statements import MarkedBody, unmarked
from backend_c.render.translation_units import Program, render_plan
from hlo.module import Module
from hlo.passes.fusion import fused_with_reasons
from hlo.passes.fusion_reasons import Groups
from hlo.passes.fusion_targets import TARGETS
from hlo.passes.pipelines import run


@dataclass(frozen=True, slots=True)
class Compilation:
    """Hold a module after each stage of compilation, and the seconds that each stage took.

    ``before`` is the module that the fusion pass was given, and ``groups`` the fusions it chose;
    ``after`` is the module that was lowered. ``marked`` is the program's sources with marks of the
    names that are computed on each line (:mod:`backend_c.render.marked_statements`).
    """

    before: Module
    groups: Groups
    after: Module
    plan: Plan
    program: Program
    marked: Mapping[str, str]
    stages: dict[str, float]

    @property
    def listing(self) -> Listing:
        """Return the module before fusion beside its fusions and their C, kernel by kernel."""
        return listing(self.before, self.groups, self.after, self.plan, self.program, self.marked)


def compilation(
    module: Module, settings: Settings, pipeline: str, dialect: Dialect = OPENMP
) -> Compilation:
    """Run the passes, lower and render a module that was verified; OpenMP C with timers.

    Raises Unsupported for what the backend does not take.
    """
    stages: list[Module] = [module]
    groups: Groups = {}
    before = module

    def after(name: str, changed: Module) -> None:
        nonlocal groups, before
        if name in TARGETS:
            # The pipeline keeps no reasons, so that the pass runs once more for them.
            before = stages[-1]
            _, groups = fused_with_reasons(before, TARGETS[name])
        stages.append(changed)

    clock = [time.perf_counter()]
    last = run(module, pipeline, after)
    clock.append(time.perf_counter())
    # Kernels get names as they are lowered, as in what is compiled.
    kernels = DistinctKernels(dialect, MarkedBody)
    plan = lower(last, settings, kernels.name)
    plan = phases.split(plan) if dialect is CUDA else plan
    clock.append(time.perf_counter())
    program = render_plan(plan, dialect, timed=dialect is OPENMP, kernels=kernels)
    clock.append(time.perf_counter())
    names = ("passes", "lowering", "rendering")
    seconds = {name: b - a for name, a, b in zip(names, clock, clock[1:])}
    plain = {name: unmarked(text)[0] for name, text in program.sources.items()}
    unmarked_program = replace(program, sources=plain)
    return Compilation(before, groups, last, plan, unmarked_program, program.sources, seconds)
