"""List the passes, and the pipelines: sequences of passes for each backend and mode."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hlo.module import Module
from hlo.passes.common_subexpressions import common_subexpressions, merge_computations
from hlo.passes.complex_functions.expansion import complex_functions
from hlo.passes.complex_functions.products import complex_products
from hlo.passes.complex_functions.sums import complex_sums
from hlo.passes.dead_code import dead_code
from hlo.passes.folds_in_order import in_order, kept_in_order
from hlo.passes.fusion import fusion
from hlo.passes.fusion_targets import TARGETS
from hlo.passes.inline import inline
from hlo.passes.late_broadcasts import late_broadcasts
from hlo.passes.layouts import layouts
from hlo.passes.loops.loop_invariants import loop_invariants
from hlo.passes.loops.products_of_slices import products_of_slices
from hlo.passes.loops.right_factors import right_factors
from hlo.passes.loops.single_trips import single_trips
from hlo.passes.scatters import scatters
from hlo.passes.simplify import simplify
from hlo.passes.single_terms import single_terms
from hlo.passes.transpositions.transposes import transposes
from hlo.passes.windows.merged_windows import merged_windows
from hlo.passes.windows.tiling_windows import tiling_windows

PASSES: dict[str, Callable[[Module], Module]] = {
    "complex_functions": complex_functions,
    "complex_products": complex_products,
    "complex_sums": complex_sums,
    "inline": inline,
    "layouts": layouts,
    "late_broadcasts": late_broadcasts,
    "merge_computations": merge_computations,
    "merged_windows": merged_windows,
    "scatters": scatters,
    "simplify": simplify,
    "single_terms": single_terms,
    "single_trips": single_trips,
    "tiling_windows": tiling_windows,
    "transposes": transposes,
    "common_subexpressions": common_subexpressions,
    "products_of_slices": products_of_slices,
    "right_factors": right_factors,
    "loop_invariants": loop_invariants,
    "dead_code": dead_code,
    **{name: partial(fusion, target=target) for name, target in TARGETS.items()},
}

_BEFORE_LOOPS = (
    "inline",
    "layouts",
    "merge_computations",
    "scatters",
    "simplify",
    "late_broadcasts",
    "single_terms",
    "single_trips",
    "common_subexpressions",
)
_LOOPS = (
    "loop_invariants",
    # Behind it, as the transposes that right_factors makes would be folded into the dots again.
    "transposes",
    # Merged operands make more rules apply, select(p, x, x), and concatenations: slices of parts.
    "simplify",
    "dead_code",
)
# Products of all slices at once take memory, which targets without it to spare do not have; exact
# products pack their factors.
_BEFORE_FUSION = (*_BEFORE_LOOPS, "products_of_slices", *_LOOPS)
_BEFORE_FAST_FUSION = (
    *_BEFORE_LOOPS[:2],
    "complex_functions",
    "complex_products",
    "complex_sums",
    "tiling_windows",
    "merged_windows",
    *_BEFORE_LOOPS[2:],
    "products_of_slices",
    "right_factors",
    *_LOOPS,
)
_IN_LITTLE_MEMORY = (*_BEFORE_LOOPS, *_LOOPS)
_FUSION = ("fusion", "merge_computations", "dead_code")
_EXACT_FUSION = ("fusion_of_exact_sums", *_FUSION[1:])
_FAST_FUSION = ("fusion_with_epilogues", *_FUSION[1:])
_EXACT_FUSION_BY_THREADS = ("fusion_of_exact_sums_by_threads", *_FUSION[1:])
_FAST_FUSION_BY_THREADS = ("fusion_with_epilogues_by_threads", *_FUSION[1:])
_SCALAR_FUSION = ("fusion_in_little_memory", *_FUSION[1:])

PIPELINES: dict[str, tuple[str, ...]] = {
    "backend_c": (*_BEFORE_FUSION, *_EXACT_FUSION),
    "backend_c_fast": (*_BEFORE_FAST_FUSION, *_FAST_FUSION),
    # Threads of a GPU compute an element each, whatever row it is of.
    "backend_c_by_threads": (*_BEFORE_FUSION, *_EXACT_FUSION_BY_THREADS),
    "backend_c_fast_by_threads": (*_BEFORE_FAST_FUSION, *_FAST_FUSION_BY_THREADS),
    # A library of products, cuBLASLt, computes no epilogues.
    "backend_c_fast_library": (*_BEFORE_FAST_FUSION, *_FUSION),
    "backend_c_scalar": (*_IN_LITTLE_MEMORY, *_SCALAR_FUSION),
    # backend_c_scalar, divided where hlo/passes/bands makes loops. Behind it loop_invariants is
    # left out: it would hoist, as a whole, what each band computes a part of.
    "before_bands": _IN_LITTLE_MEMORY,
    "after_bands": ("simplify", "common_subexpressions", "dead_code", *_SCALAR_FUSION),
    "lowerable": ("inline", "layouts"),  # the least that the C backend requires
}
# The sums of fast numerics have no order of their own.
_SUMS_IN_ANY_ORDER = ("backend_c_fast", "backend_c_fast_by_threads", "backend_c_fast_library")


def run(
    module: Module, pipeline: str, after: Callable[[str, Module], None] | None = None
) -> Module:
    """Run the passes of a pipeline in order; call ``after`` with each name and its result.

    Raises KeyError for an unknown pipeline, and what the passes raise (Unsupported).
    """
    folds = frozenset[str]() if pipeline in _SUMS_IN_ANY_ORDER else in_order(module)
    for name in PIPELINES[pipeline]:
        module = kept_in_order(PASSES[name](module), folds)
        if after is not None:
            after(name, module)
    return module
