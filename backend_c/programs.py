"""Make plans and programs of modules: run the passes, lower, and render."""

from __future__ import annotations

import sys
from collections.abc import Callable

from backend_c.ir.loop_ir import Kernel
from backend_c.ir.settings import Numerics, Settings
from backend_c.lower.lowering import ignored, lower
from backend_c.lower.plan import Plan
from backend_c.native.toolchain import WORKERS
from backend_c.render.dialect import OPENMP
from backend_c.render.distinct_kernels import DistinctKernels
from backend_c.render.early_units import EarlyUnits
from backend_c.render.translation_units import Program, render_plan
from hlo.errors import Unsupported
from hlo.module import Module
from hlo.passes.pipelines import run
from hlo.ranks import declared, knows_ranks
from hlo.verification.verify import verify

_EXACT = Settings()
_PIPELINE = {Numerics.EXACT: "backend_c", Numerics.FAST: "backend_c_fast"}
_PIPELINE_BY_THREADS = {
    Numerics.EXACT: "backend_c_by_threads",
    Numerics.FAST: "backend_c_fast_by_threads",
}
_SCALAR_PIPELINE = "backend_c_scalar"
_LIBRARY_PIPELINE = "backend_c_fast_library"


def rendered(module: Module, settings: Settings, started: Callable[[str, str], object]) -> Program:
    """Verify, lower and render a module; ``started`` is called with the name and text of each unit
    that is rendered before all are.

    Exact programs stay whole: alone in a unit, a kernel has all its exact functions inlined by gcc
    12, whose combiner took 16 s for twelve of them in a loop.
    """
    if not settings.is_fast:
        kernels = DistinctKernels(OPENMP)
        plan = lowered(module, settings, launched=kernels.name)
        return render_plan(plan, OPENMP, kernels=kernels)
    early = EarlyUnits(started)
    plan = lowered(module, settings, launched=early.add)
    return render_plan(plan, OPENMP, at_a_time=WORKERS, early=early)


def lowered(
    module: Module,
    settings: Settings = _EXACT,
    pipeline: str = "",
    launched: Callable[[Kernel], object] = ignored,
) -> Plan:
    """Verify a module, run the passes of a pipeline (by default its numerics'), and lower it."""
    verify(module)
    return planned(module, settings, pipeline, launched)


def planned(
    module: Module,
    settings: Settings = _EXACT,
    pipeline: str = "",
    launched: Callable[[Kernel], object] = ignored,
) -> Plan:
    """Run the passes of a pipeline over a verified module and lower it; ``launched`` is called with
    each kernel once it is lowered (:func:`backend_c.lower.lowering.lower`).

    Raises Unsupported for a module of several ranks, or constants larger than memory.
    """
    require_one_rank(module)
    try:
        return lower(run(module, pipeline or pass_pipeline(settings)), settings, launched)
    # The text decides how large constants are: they may need more memory than there is.
    except MemoryError as error:
        raise Unsupported("constants that the program needs do not fit into memory") from error


def pass_pipeline(settings: Settings) -> str:
    """Return the name of the pass pipeline (:mod:`hlo.passes.pipelines`) for settings."""
    if settings.is_scalar:
        return _SCALAR_PIPELINE
    is_library = settings.numerics is Numerics.FAST and settings.library_side < sys.maxsize
    pipelines = _PIPELINE if settings.has_lanes else _PIPELINE_BY_THREADS
    return _LIBRARY_PIPELINE if is_library else pipelines[settings.numerics]


def require_one_rank(module: Module) -> None:
    """Raise Unsupported for a module of several ranks with an instruction that depends on them."""
    replicas, partitions = declared(module)
    if replicas * partitions > 1 and knows_ranks(module):
        raise Unsupported(
            f"the module is made for {replicas} replicas × {partitions} partitions: generated C is"
            f" one rank; use interp.evaluate(…, replicas={replicas}, partitions={partitions})"
        )
