"""Give XLA's parser texts that are almost programs: it must reject them without crashing."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import hlo
from fuzz.draw.text_mutations import LARGEST, mutated
from fuzz.judge.failure import ended
from fuzz.oracles.oracle import Difference, HostileText, Outcome, Property, each
from fuzz.peers.xla import XLA
from fuzz.reducer.search import Case

_TEXTS = 8  # of each program
_SECONDS = 10.0  # for one text
_MEMORY = 4 << 30  # bytes: a number in a text may be taken for a size


@contextmanager
def xla_parses() -> Iterator[Property]:
    """Check that XLA's parser survives mutations of drawn programs, by token and by byte."""
    with XLA(timeout=_SECONDS, memory=_MEMORY) as peer:
        yield each(lambda case: _asked(peer, case))


def texts(case: Case) -> Iterator[str]:
    """Yield mutations of a program's text, which depend on that text alone."""
    text = hlo.format(case.module)
    rng = random.Random(zlib.crc32(text.encode()))
    for _ in range(_TEXTS):
        yield mutated(rng, text, text)[: 2 * LARGEST]


def _asked(peer: XLA, case: Case) -> Outcome:
    for text in texts(case):
        kind, crash = _crash(peer, text)
        if kind:
            told = HostileText(text, partial(_breaks, peer, kind))
            return Difference(kind, crash.splitlines()[0][:200], text=told)
    return None


def _breaks(peer: XLA, kind: str, text: str) -> bool:
    return _crash(peer, text)[0] == kind


def _crash(peer: XLA, text: str) -> tuple[str, str]:
    """Return the kind and the description of the parser's crash on a text, ("", "") without one."""
    crash = peer.parsed(text).crash
    if crash is None:
        return "", ""
    failure = ended(crash)
    return f"{failure.kind}: {', '.join(sorted(failure.signs))}", crash
