"""Compare XLA's program before and after optimisation, both interpreted.

XLA's own results differ by rounding, which may hide a wrong pass; here both texts are evaluated
exactly and judged like two stages of a dump (:mod:`bisect_dump`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import bisect_dump
import hlo
from fuzz.draw.time_limit import TooLongError, time_limit
from fuzz.judge.undefined_behaviour import undefined
from fuzz.oracles.compilers import SECONDS
from fuzz.oracles.oracle import (
    Difference,
    LeftOut,
    Outcome,
    Property,
    each,
    refused,
    right,
    where_defined,
)
from fuzz.peers.xla import XLA
from fuzz.reducer.search import Case
from hlo.errors import Error
from hlo.module import Module
from hlo.types import leaves
from interp.envelope.verdict import OUTSIDE, UNDETERMINED


@contextmanager
def xla_optimised() -> Iterator[Property]:
    """Check that XLA's optimised text has the program's meaning, within the envelope."""
    with XLA(timeout=SECONDS) as peer:
        yield each(lambda case: _asked(peer, case))


def _asked(peer: XLA, case: Case) -> Outcome:
    # Where the interpreter has no result, this raises, and XLA is not asked.
    right(case)
    answer = peer.optimised(hlo.format(case.module))
    if answer.optimised is None:
        return refused(answer.error or "") if answer.crash is None else LeftOut("crash")
    try:
        with time_limit(3 * SECONDS):
            return meaning_changed(case, hlo.parse(answer.optimised))
    except TooLongError:
        return LeftOut("takes too long")
    except Error as error:
        return LeftOut(f"optimised: {type(error).__name__}")


def _is_bounded(module: Module) -> bool:
    """Return whether a program has bounded dimensions: XLA pads them with undefined elements."""
    instructions = (i for c in module.computations for i in c.instructions)
    return any(
        i.opcode == "dynamic-reshape" or any(leaf.is_dynamic for leaf in leaves(i.shape))
        for i in instructions
    )


def meaning_changed(case: Case, optimised: Module) -> Outcome:
    """Compare a program with its optimised form; raise Error if that has no result."""
    before, after = (
        bisect_dump.as_stage(bisect_dump.Stage(Path(label), label), module)
        for label, module in (("before", case.module), ("after", optimised))
    )
    hlo.verify(optimised)
    if not bisect_dump.same_interface(before, after):
        return LeftOut("other arguments or results")
    meanings = bisect_dump.Meanings(before, lambda module, path, ranks: (case.arrays,), 0)
    found = meanings.judgement(before, after)
    if found.kind == OUTSIDE and _is_bounded(case.module):
        return LeftOut("bounded dimensions")
    if found.kind == OUTSIDE and undefined(case.module, case.arrays):
        return LeftOut("the program means nothing")
    if found.kind == OUTSIDE:
        wrong = Difference("another meaning", found.lines[0] if found.lines else "")
        return where_defined(wrong, case)
    if found.kind == UNDETERMINED:
        return LeftOut("suspect" if found.is_suspect else UNDETERMINED)
    return None
