"""Another compiler's results, judged element by element: ``hlo check --against``.

The envelope (:mod:`interp.envelope`) holds every result that a compiler may give whose instructions
each err within its budget. What is outside of it is proven wrong.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fuzz.peers.xla import XLA, Answer
from hlo.errors import Error, Unsupported
from hlo.module import Module
from hlo_tools.verdict import Value, outputs
from interp.envelope.budget import XLA_CPU, Budget
from interp.envelope.enclosure import Enclosure
from interp.envelope.evaluation import Enclosed, enclose
from interp.envelope.verdict import OUTSIDE, UNDETERMINED, Verdict, judged

_MOST_LINES = 8
_TIMEOUT = 600.0  # seconds for one program


class Peer(NamedTuple):
    """A compiler to judge: how to start it, what it may do, what it needs to be installed."""

    start: Callable[..., XLA]
    budget: Budget
    needs: str
    extra: str


PEERS = {"xla": Peer(XLA, XLA_CPU, "jaxlib", "xla")}


@dataclass(frozen=True, slots=True)
class Judgement:
    """``counts`` has the number of elements of each verdict. ``refused``: the peer gave no
    results. ``outside`` and ``undetermined`` have a line each for what they are named after."""

    compile: float = 0.0
    run: float = 0.0
    counts: dict[str, int] | None = None
    outside: tuple[str, ...] = ()
    undetermined: tuple[str, ...] = ()
    refused: str | None = None
    crashed: bool = False


def require(name: str) -> None:
    """Error if a peer is not installed."""
    if importlib.util.find_spec(PEERS[name].needs) is None:
        raise Error(
            f"--against {name}: {PEERS[name].needs} is not installed:"
            f" pip install 'hlo-oracle[{PEERS[name].extra}]'"
        )


def judge(
    name: str, module: Module, text: str, values: tuple[Value, ...], exact: Value, seed: int
) -> Judgement:
    """What a peer makes of a program's text and arguments, beside the exact result."""
    require(name)
    peer = PEERS[name]
    arrays = [array for _, array in outputs(values)]
    with peer.start(timeout=_TIMEOUT) as run:
        answer = run(text, arrays)
    if answer.outputs is None:
        reason = answer.error if answer.crash is None else f"crashed: {answer.crash}"
        return Judgement(refused=_first_line(reason or ""), crashed=answer.crash is not None)
    legal = enclose(module, *values, peer=peer.budget, seed=seed)
    return _judged(answer, exact, legal)


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "no reason given")[:200]


def _judged(answer: Answer, exact: Value, legal: Enclosed) -> Judgement:
    assert answer.outputs is not None
    expected = [(place, array) for place, array in outputs(exact) if array.dtype != object]
    enclosures = [x for x in _flat(legal.result) if x is not None]
    if not len(answer.outputs) == len(expected) == len(enclosures):
        line = f"{len(answer.outputs)} arrays, not {len(expected)}"
        return Judgement(answer.compile, answer.run, {OUTSIDE: 1}, (line,))
    counts: Counter[str] = Counter()
    outside: list[str] = []
    for (place, one), other, enclosure in zip(expected, answer.outputs, enclosures, strict=True):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            counts[OUTSIDE] += max(one.size, 1)
            kinds = [f"{x.dtype}{list(x.shape)}" for x in (other, one)]
            outside.append(f"{place or 'result'}: {kinds[0]}, not {kinds[1]}")
            continue
        verdict = judged(other, one, enclosure)
        counts.update(verdict.counts)
        if verdict.first_outside is not None:
            outside.append(_evidence(place, verdict, other, one, enclosure))
    opened = tuple(_openings(legal)) if counts[UNDETERMINED] else ()
    lines = tuple(outside[:_MOST_LINES])
    return Judgement(answer.compile, answer.run, dict(counts), lines, opened)


def _flat(value: object) -> Iterator[Enclosure | None]:
    if isinstance(value, tuple):
        for part in value:
            yield from _flat(part)
    else:
        assert value is None or isinstance(value, Enclosure)
        yield value


def _evidence(
    place: str, verdict: Verdict, actual: np.ndarray, exact: np.ndarray, legal: Enclosure
) -> str:
    index = verdict.first_outside
    assert index is not None
    low, high = legal.low[index], legal.high[index]
    nan = " or NaN" if legal.nan[index] else ""
    return (
        f"{place or 'result'}: {verdict.counts[OUTSIDE]} of {actual.size} outside, first at"
        f" [{','.join(map(str, index))}]: {actual[index]!s}, where {exact[index]!s} is exact and"
        f" {low!s} to {high!s}{nan} legal"
    )


def _openings(legal: Enclosed) -> Iterator[str]:
    """Where the envelope lost sight of the values."""
    for opening in legal.openings[:_MOST_LINES]:
        yield (
            f"%{opening.instruction} = {opening.opcode} in {opening.computation} may be anything"
            f" in {opening.elements} elements"
        )


def require_one_rank(ranks: int) -> None:
    """Unsupported if there are several ranks: peers are run on one."""
    if ranks > 1:
        raise Unsupported(f"--against runs one rank, not {ranks}")


def described(counts: Sequence[tuple[str, int]]) -> str:
    """Counts as words: ``64 equal, 3 within``."""
    return ", ".join(f"{count} {kind}" for kind, count in counts if count)
