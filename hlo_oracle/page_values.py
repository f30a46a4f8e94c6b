"""Provide the values of a run, and the verdict on another compiler's results, for a page."""

from __future__ import annotations

from collections.abc import Sequence

import interp
import pages
from hlo.errors import Error
from hlo.values import Value
from hlo_oracle import peer_verdicts
from hlo_oracle.loading.programs import Program
from hlo_oracle.peer_verdicts import Examination, Peer, Run
from interp.envelope.nested_values import NestedValues
from interp.envelope.trying import Output
from interp.envelope.verdict import OUTSIDE

_TIMEOUT = 600.0  # seconds for one program


def page_values(
    program: Program, arguments: tuple[Value, ...], seed: int, against: str | None
) -> dict[str, object]:
    """Evaluate a program exactly and summarise each instruction's values; if a compiler ``against``
    is named, judge its results and intermediate values. Raises Error if that gives no results."""
    observed = pages.Observed(program.module)
    exact = interp.evaluate(program.module, *arguments, seed=seed, watch=observed)
    values = observed.json()
    if against is None:
        return values
    peer_verdicts.require(against)
    peer = peer_verdicts.peer(against)
    with peer.start(_TIMEOUT) as run:
        examined = peer_verdicts.examined(
            run, peer.budget, program.module, program.text, arguments, exact=exact, seed=seed
        )
        if examined.found is None:
            raise Error(f"--against {against}: {examined.refused or examined.crash}")
        between = _in_between(run, peer, program, arguments, seed)
    return pages.with_judged(values, _judged(against, program, arguments, examined, between))


def _in_between(
    run: Run, peer: Peer, program: Program, arguments: tuple[Value, ...], seed: int
) -> tuple[Sequence[Output], NestedValues]:
    """Judge a compiler's values of the entry's instructions, and of those in loops, branches and
    calls."""
    from fuzz.judge.inner_values import inner_outputs  # starts processes
    from fuzz.judge.nested_values import nested_values

    inner = inner_outputs(run, peer.budget, program.module, arguments, seed=seed)
    return inner, nested_values(run, peer.budget, program.module, arguments, seed=seed)


def _judged(
    against: str,
    program: Program,
    arguments: tuple[Value, ...],
    examined: Examination,
    between: tuple[Sequence[Output], NestedValues],
) -> pages.Judged:
    """Combine the verdicts on a compiler's values. For a program with several right results nothing
    is proven."""
    from fuzz.judge.undefined_behaviour import left_open

    assert examined.found is not None
    inner, nested = between
    why = examined.open_why
    if why is None and (nested.first or any(x.verdict.counts[OUTSIDE] for x in inner)):
        why = left_open(program.module, arguments)
    if why is not None:
        lines = [f"the result is open: {why}"]
        values = nested.undecided().values
        return pages.Judged(against, examined.found, lines, inner, values, None, is_open=True)
    lines = [*peer_verdicts.evidence(examined.found)]
    first = None
    if nested.first is not None:
        first = nested.first, peer_verdicts.nested_evidence(nested.first)
    return pages.Judged(against, examined.found, lines, inner, nested.values, first)
