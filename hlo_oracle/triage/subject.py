"""Triage as a campaign: each program is a chunk, judged, reduced if it fails, and grouped by cause.

A program is *legal* (each element is one that a legal compiler gives), *undetermined*, *wrong*
(proven), a *crash* (or a hang) of the compiler, *without meaning*, *refused* by the compiler, or
*not read* by this project.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fuzz.campaign import findings
from fuzz.campaign.oracle_examiner import Evidence, OracleExaminer
from fuzz.campaign.subject import Chunk, Done, Examiner, Finding, Part, Suspect, whole
from fuzz.judge import failure
from fuzz.judge.failure import Against
from fuzz.oracles.compilers import SECONDS, failure_or_outcome, judging
from fuzz.oracles.optimisation_passes import PASSES
from fuzz.peers.xla import XLA
from fuzz.reducer.search import Case
from hlo import io_errors
from hlo.errors import Error
from hlo_oracle import arguments, peer_verdicts
from hlo_oracle.loading import programs
from hlo_oracle.triage.inputs import Input
from interp.envelope.verdict import UNDETERMINED
from interp.evaluator import checked

ORACLE = "triage"
LEGAL, WRONG, CRASH, MEANINGLESS, REFUSED, UNREAD = (
    "legal", "wrong", "crash", "without meaning", "refused", "not read",
)  # fmt: skip


@dataclass(frozen=True)
class Triage:
    """The plan of a triage: its inputs and the compiler; ``state`` is the campaign's directory."""

    inputs: tuple[Input, ...]
    against: str
    seed: int
    elided: str | None
    state: Path

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """The inputs by name and hash, and the settings that decide verdicts."""
        return {
            "campaign": "triage",
            "against": self.against,
            "seed": self.seed,
            "elided": self.elided,
            "inputs": [(one.name, one.digest) for one in self.inputs],
        }

    @property
    def size(self) -> int:
        """The number of programs in a chunk: one."""
        return 1

    @property
    def memory(self) -> int | None:
        """The memory limit in bytes of a worker, which evaluates programs."""
        return 16 << 30

    def examiner(self, done: Done) -> AbstractContextManager[Examiner]:
        """Open a triager with a process of the compiler."""
        return _triager(self)


@contextmanager
def _triager(triage: Triage) -> Iterator[Triager]:
    peer = peer_verdicts.peer(triage.against)
    with peer.start(SECONDS) as run:
        yield Triager(triage, Against(run, peer.budget, triage.seed), run)


class Triager:
    """Judges programs one by one."""

    def __init__(self, triage: Triage, against: Against, run: Any) -> None:
        self._triage, self._against, self._run = triage, against, run
        command = None if triage.against == "xla" else triage.against
        self._notes: tuple[str, ...] = ()  # of the last program
        self._oracle = OracleExaminer(self._cases, {ORACLE: judging(against, command)})

    def _cases(self, number: int) -> Sequence[Case]:
        one = self._triage.inputs[number]
        given = _Asked(self._triage.seed, one.arguments)
        program = programs.read_program(
            one.path, self._triage.elided, given=programs.sizes_of(given)
        )
        self._notes = program.notes
        values = program.arguments or arguments.given(program.module, one.path, given)
        return [Case(program.module, checked(program.module.entry, values))]

    def chunk(self, number: int, examples: Sequence[int] | None = None) -> Iterator[Part]:
        """Judge a program; the verdict becomes a note under its name."""
        name = self._triage.inputs[number].name
        try:
            found = whole(self._oracle.chunk(number, examples))
            verdict, why = self._verdict(found)
        except (Error, OSError) as error:
            found, verdict, why = Chunk(), UNREAD, io_errors.why(error)
            self._notes = ()
        ours = [x for x in found.suspects if x.evidence.found.judged is None]
        if ours:  # no compiler was asked: this is what evaluating the program here raised
            found, verdict, why = Chunk(), UNREAD, ours[0].detail
        # Each program is of a group, which only its reduction tells.
        suspects = [replace(one, isolated=None, narrowed=None) for one in found.suspects]
        told = Chunk(suspects=suspects)
        told.count("counts", {"programs": 1, verdict: 1})
        told.notes[name] = json.dumps((verdict, "; ".join((why, *self._notes))))
        yield Part({0}, told)

    def _verdict(self, found: Chunk) -> tuple[str, str]:
        """Return the verdict on the last program, and its reason as text."""
        against = self._against
        if found.suspects:
            kind = found.suspects[0].kind
            return (CRASH if kind.startswith((failure.CRASH, failure.HANG)) else WRONG), kind
        if against.refusal is not None:
            return (REFUSED if against.is_refused else MEANINGLESS), against.refusal
        if against.counts.get(UNDETERMINED):
            return UNDETERMINED, peer_verdicts.described([*against.counts.items()])
        outcomes = [x for x in found.counts if x.startswith(f"{ORACLE}: left out")]
        if outcomes:
            return UNDETERMINED, outcomes[0].partition(", ")[2]
        return LEGAL, peer_verdicts.described([*against.counts.items()])

    def unreduced(self, suspect: Suspect) -> Finding:
        """Make a finding of a failing program as it is."""
        return self._oracle.unreduced(suspect)

    def reduced(self, suspect: Suspect, number: int, seconds: float) -> Finding:
        """Reduce a failing program, and note its group."""
        found = self._oracle.reduced(suspect, number, seconds)
        evidence: Evidence = suspect.evidence
        gone = [] if found.is_flaky else self._gone_without(evidence.case)
        found = replace(found, facts={**found.facts, "gone_without": gone})
        group = findings.key(ORACLE, found)
        members = self._triage.state / "members"
        members.mkdir(exist_ok=True)
        (members / f"{number:06}").write_text(group, "utf-8")
        return found

    def _gone_without(self, case: Case) -> list[str]:
        """List the passes of XLA without which a program no longer fails."""
        if not isinstance(self._run, XLA):
            return []
        budget, seed = self._against.budget, self._triage.seed

        def is_gone(hlo_pass: str) -> bool:
            against = Against(self._run.without(hlo_pass), budget, seed)
            return failure_or_outcome(against, case) is None and against.refusal is None

        return [name for name in PASSES if is_gone(name)]

    def write(self, number: int, example: int, folder: Path) -> None:
        """Copy the program as it was given to the finding's folder."""
        one = self._triage.inputs[number]
        (folder / one.path.name).write_bytes(one.path.read_bytes())


@dataclass(frozen=True, slots=True)
class _Asked:
    """Options for the source of a program's arguments."""

    seed: int | None
    args: Path | None
    recipe: str | None = None
    cast: bool = False
