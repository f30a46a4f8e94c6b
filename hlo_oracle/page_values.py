"""Provide the values of a run, and the verdict on another compiler's results, for a page."""

from __future__ import annotations

from collections.abc import Sequence

import interp
import pages
from hlo.errors import Error
from hlo.values import Value
from hlo_oracle import peer_verdicts
from hlo_oracle.loading.programs import Program
from interp.envelope.judgement import Output

_TIMEOUT = 600.0  # seconds for one program


def page_values(
    program: Program, arguments: tuple[Value, ...], seed: int, against: str | None
) -> dict[str, object]:
    """Evaluate a program exactly and summarise what each instruction gave; judge the results of the
    compiler ``against``, if one is named, and its values of the entry's instructions, and compare
    those in loops. Raises Error if that gives no results."""
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
        inner: Sequence[Output] = ()
        loops: Sequence[pages.InLoop] = ()
        if examined.found is not None:
            from fuzz.judge.inner_values import inner_outputs
            from fuzz.judge.loop_values import loop_values

            inner = inner_outputs(run, peer.budget, program.module, arguments, seed=seed)
            found = loop_values(run, program.module, arguments, seed=seed)
            loops = [pages.InLoop(*one) for one in found]
    if examined.found is None:
        raise Error(f"--against {against}: {examined.refused or examined.crash}")
    open_why = [f"the result is open: {examined.open_why}"] if examined.open_why else []
    lines = open_why or list(peer_verdicts.evidence(examined.found))
    return pages.judged(values, against, examined.found, lines, inner, loops)
