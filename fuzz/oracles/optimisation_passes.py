"""Compare XLA's results with and without one of its passes.

An optional pass may only change roundings. If the two results differ, one outside the envelope and
the other inside, then the pass is at fault (outside with it), or it hides the fault of another
(outside without it). Each program is compiled without the pass that its text chooses, so a campaign
covers all; a single program without each, or without the one that is named (``xla-flags:
algsimp``), which is how findings are reduced.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import hlo
from fuzz.judge.failure import Against, Failure, Judged
from fuzz.judge.undefined_behaviour import undefined
from fuzz.oracles.compilers import SECONDS, detail, failure_or_outcome
from fuzz.oracles.oracle import Difference, LeftOut, Outcome, Property, each, refused
from fuzz.peers.xla import XLA, Answer
from fuzz.reducer.search import Case
from hlo.bit_equality import differences
from hlo.values import arrays_of
from interp.envelope.budget import XLA_CPU

PREFIX = "xla-flags: "

# What XLA:CPU of jaxlib 0.10.2 can do without; expanders, decomposers and layouts it needs.
PASSES = (
    *("algsimp", "batch-dot-simplification", "broadcast_canonicalizer", "call-inliner"),
    *("change-op-data-type", "conditional-to-select", "constant_folding", "cse", "dce"),
    *("dynamic-dimension-simplifier", "fusion", "fusion-wrapper", "gather_simplifier"),
    *("gemv-rewriter", "literal-canonicalizer", "optimize_input_output_buffer_alias"),
    *("reduce-decomposer", "reduce-window-resizer", "reduce-window-rewriter", "reshape-mover"),
    *("simplify-conditional", "simplify-sorts", "simplify-while-loops"),
    *("small-while-loop-hoisting", "topk-rewriter", "transpose-folding"),
    *("tree_reduction_rewriter", "tuple-simplifier", "while-loop-constant-sinking"),
    *("while-loop-invariant-code-motion", "zero_sized_hlo_elimination"),
)


@contextmanager
def without_each(passes: Sequence[str] = PASSES) -> Iterator[Property]:
    """Check that leaving out a pass of XLA changes results by roundings at most."""
    with XLA(timeout=SECONDS) as peer:

        def of(cases: Sequence[Case]) -> list[Outcome]:
            if len(cases) == 1:
                return each(lambda case: _first(peer, case, passes))(cases)
            return each(lambda case: _compared(peer, case, chosen(case, passes)))(cases)

        yield of


def chosen(case: Case, passes: Sequence[str]) -> str:
    """Choose a pass by the program's text."""
    return passes[zlib.crc32(hlo.format(case.module).encode()) % len(passes)]


def _first(peer: XLA, case: Case, passes: Sequence[str]) -> Outcome:
    """Leave out one pass after the other; return the first difference, else the last outcome."""
    outcome: Outcome = None
    for name in passes:
        outcome = _compared(peer, case, name)
        if isinstance(outcome, Difference):
            return outcome
    return outcome


def _compared(peer: XLA, case: Case, hlo_pass: str) -> Outcome:
    if undefined(case.module, case.arrays) is not None:  # not run: it may damage the process
        return LeftOut("the program means nothing")
    text, given = hlo.format(case.module), tuple(arrays_of(case.arrays))
    runs = peer, peer.without(hlo_pass)
    answers = [run(text, given) for run in runs]
    if answers[0].error is not None:
        return refused(answers[0].error)
    if answers[1].error is not None:
        return LeftOut(f"refused without {hlo_pass}")
    if _are_equal(*answers):
        return None
    found = [failure_or_outcome(Against(run, XLA_CPU), case) for run in runs]
    for one in found:
        if isinstance(one, LeftOut | Difference):
            return one
    with_pass, without = (one if isinstance(one, Failure) else None for one in found)
    if (with_pass is None) == (without is None):  # by no fault of this pass
        return None
    return _difference(hlo_pass, with_pass, without)


def _are_equal(one: Answer, other: Answer) -> bool:
    if one.outputs is None or other.outputs is None:
        return False
    return not differences(one.outputs, other.outputs)


def _difference(hlo_pass: str, with_pass: Failure | None, without: Failure | None) -> Difference:
    failure = with_pass or without
    assert failure is not None
    where = hlo_pass if with_pass else f"without {hlo_pass}"
    kind = f"{where}: {failure.kind}: {', '.join(sorted(failure.signs))}"
    judged = Judged(failure, XLA_CPU) if with_pass else None
    return Difference(kind, detail(failure), f"{PREFIX}{hlo_pass}", judged=judged)
