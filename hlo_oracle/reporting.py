"""Report a miscompile: find the failure, reduce it, and write a folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import hlo
from hlo.errors import Error
from hlo.module import Module
from hlo.operating_system import processors
from hlo.values import Value
from hlo_oracle import peer_verdicts, reduction_progress
from hlo_oracle.progress_line import ProgressLine
from hlo_oracle.terminal import one_line

if TYPE_CHECKING:
    from fuzz.judge.failure import Against

_TIMEOUT = 60.0  # seconds that one program may take


@dataclass(frozen=True, slots=True)
class Reduction:
    """Limits of a reduction: seconds, number of processes, and the seed of the program's random
    bits."""

    seconds: float = 300.0
    workers: int = field(default_factory=processors)
    seed: int | None = None
    line: ProgressLine = field(default_factory=ProgressLine, compare=False)


@dataclass(frozen=True, slots=True)
class Written:
    """A report: the kind of failure, the number of instructions, the folder and its archive."""

    kind: str
    instructions: int
    directory: Path
    archive: Path


class NothingWrong(Error):
    """Raised if nothing is wrong with what a compiler makes of a program."""


class NotJudged(NothingWrong):
    """Raised if there is nothing to judge: a compiler refuses the program, or it is undefined."""


def no_failure(judge: Against, name: str) -> NothingWrong:
    """Make the error for a program on which ``judge`` found no failure of the peer ``name``."""
    why = one_line((judge.refusal or "").strip().partition("\n")[0])
    if not why:
        return NothingWrong(f"nothing is wrong with what {peer_verdicts.title(name)} makes of it")
    if judge.is_refused:
        why = f"{peer_verdicts.title(name)} does not take it: {why}"
    return NotJudged(why)


def report(
    module: Module,
    values: tuple[Value, ...],
    directory: Path,
    against: str,
    given: Reduction,
    original: bytes | None = None,
) -> Written:
    """Write a report on a program that ``against`` (a peer's name, or a command) gets wrong.

    ``original`` is the program's own file, HLO text of the module by default. Raises NothingWrong,
    or NotJudged.
    """
    peer_verdicts.require(against)
    from fuzz.judge.failure import Against, Judged
    from fuzz.reducer.reduction import exact
    from fuzz.report import Report, write

    peer, seed = peer_verdicts.peer(against), given.seed or 0
    with peer.start(_TIMEOUT) as run:
        judge = Against(run, peer.budget, seed)
        failure = judge.failure(module, values)
        if failure is None:
            raise no_failure(judge, against)
        kept = judge.keeps(failure, module, values)
        with reduction_progress.peers_at_once(kept, peer, _TIMEOUT, given) as more:
            sources = (exact, judge.values)
            small, arrays = reduction_progress.reduced(
                module, values, kept, sources, given.seconds, line=given.line, **more
            )
    judged = Judged(kept.failure, peer.budget, None if against == "xla" else against)
    text = hlo.format(module).encode() if original is None else original
    found = Report(small, arrays, judged, text, values, seed, _TIMEOUT)
    archive = write(found, directory)
    return Written(failure.kind, small.instruction_count, directory, archive)
