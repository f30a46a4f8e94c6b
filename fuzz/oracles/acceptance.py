"""Compare which programs XLA accepts and rejects with :func:`hlo.verify`.

XLA should reject an invalid program. It may accept one where it has a reason
(:mod:`fuzz.oracles.known_differences`), but it must not crash on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import hlo
from fuzz.draw.invalid_programs import Mutant, mutants
from fuzz.judge.failure import ended
from fuzz.oracles.compilers import SECONDS
from fuzz.oracles.known_differences import CONVERTED, STRICTER, UNREAD
from fuzz.oracles.oracle import Difference, Outcome, Property, each
from fuzz.peers.xla import XLA
from fuzz.reducer.search import Case
from hlo.types import leaves

_MOST_BYTES = 1 << 24  # of the arguments of a mutant
_UNREADABLE = re.compile(r"Syntax error.*?error: ([^\n]*)", re.DOTALL)
_TAKEN = STRICTER.keys() | CONVERTED.keys()


@contextmanager
def xla_accepts() -> Iterator[Property]:
    """Check that XLA accepts valid programs, rejects invalid ones, and crashes on neither."""
    with XLA(timeout=SECONDS) as peer:
        yield each(lambda case: _asked(peer, case))


def _asked(peer: XLA, case: Case) -> Outcome:
    text = hlo.format(case.module)
    own = peer.optimised(text)
    if own.crash is not None:
        return _crashed(own.crash, f"a valid program\n{text}")
    unread = _UNREADABLE.search(own.error or "")
    if unread is not None and not any(known in unread[1] for known in UNREAD):
        # Without names and numbers, which are the program's: equal refusals are of one kind.
        words = re.sub(r"[^a-z ]+", " ", unread[1])
        return Difference(f"refused: {' '.join(words.split())}", unread[1])
    found = [outcome for mutant in mutants(case.module) for outcome in _of(peer, mutant)]
    crashes = (one for one in found if one.kind.startswith("crash"))
    return next(crashes, found[0] if found else None)


def _of(peer: XLA, mutant: Mutant) -> Iterator[Difference]:
    parameters = [p.shape for p in mutant.module.entry.parameters]
    shapes = [leaf for shape in parameters for leaf in leaves(shape)]
    if sum(leaf.elements * leaf.element_type.numpy.itemsize for leaf in shapes) > _MOST_BYTES:
        return
    arrays = [np.zeros(leaf.dims, leaf.element_type.numpy) for leaf in shapes]
    answer = peer(mutant.text, arrays)
    detail = f"{mutant.label}: {mutant.message}\n{mutant.text}"
    if answer.crash is not None:
        yield _crashed(answer.crash, detail)
    elif answer.outputs is not None and (mutant.opcode, mutant.label) not in _TAKEN:
        yield Difference(f"taken: {mutant.opcode} {mutant.label}", detail)


def _crashed(crash: str, detail: str) -> Difference:
    failure = ended(crash)
    return Difference(f"{failure.kind}: {', '.join(sorted(failure.signs))}", detail)
