"""Inject each bug into programs, judge the results as ``hlo check --against`` does, and count."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import fuzz
from fuzz.campaign.program_findings import program_finding, write_program
from fuzz.campaign.subject import Chunk, Done, Finding, Part, Suspect
from fuzz.draw.time_limit import TooLongError, time_limit
from fuzz.reducer.search import Case as Program
from hlo.errors import Error, OutOfFuel
from hlo.module import Module
from hlo.values import Array
from interp.envelope.budget import XLA_CPU, Budget
from interp.envelope.enclosure import point
from interp.envelope.verdict import EQUAL, OUTSIDE, UNDETERMINED, judged
from interp.values import Value
from selftest.injection.bug import Bug
from selftest.injection.cases import Case, case, drawn, model, model_count
from selftest.injection.catalogue import BUGS
from selftest.injection.peer import Injected, NoBugError, Site, is_allowed

UNSEEN, ENDLESS = "no effect", "endless"
ALLOWED, MISSED = "allowed", "missed"
# A verdict against a result that follows from what each instruction may do: never.
CONTRADICTION = "contradiction"
OUTCOMES = (UNSEEN, ENDLESS, ALLOWED, OUTSIDE, UNDETERMINED, MISSED, CONTRADICTION)
_HIDDEN = (UNDETERMINED, MISSED, CONTRADICTION)
SECONDS = 5  # for one injection
OPCODES = sorted({opcode for bug in BUGS for opcode in bug.opcodes[:1]})


@dataclass(frozen=True, slots=True)
class Injection:
    """A bug at a site of a program, and the verdict's outcome."""

    bug: Bug
    case: Case
    site: Site
    outcome: str


def injected(bug: Bug, case: Case, site: Site, budget: Budget = XLA_CPU) -> Injection | None:
    """Inject a bug and judge the results; None where the bug does not apply."""
    peer = Injected(bug, site, case.values)
    try:
        with time_limit(SECONDS):
            outcome = _outcome(peer, case, budget)
    except NoBugError:
        return None
    except (TooLongError, OutOfFuel):
        outcome = ENDLESS
    return Injection(bug, case, site, outcome)


def _outcome(peer: Injected, case: Case, budget: Budget) -> str:
    try:
        actual = peer(case.module)
    except OutOfFuel:
        raise
    except Error as error:  # the program as it is then means nothing: sizes that do not agree
        raise NoBugError from error
    if not peer.seen or _same(actual, case.exact):
        return UNSEEN
    run = Injected(peer.bug, peer.site, peer.values)
    found = case.judge.judged(actual, run)
    allowed = is_allowed(case.module, peer, budget)
    if found.counts.get(OUTSIDE) or found.wrong:
        return CONTRADICTION if allowed else OUTSIDE
    if allowed:
        return ALLOWED
    return UNDETERMINED if found.counts[UNDETERMINED] else MISSED


def _same(actual: Sequence[Array], exact: Sequence[Array]) -> bool:
    """Test for equal results, except for NaNs' bits and signs of zeros, which no verdict is
    about."""
    return len(actual) == len(exact) and all(
        one.shape == other.shape and judged(one, other, point(other)).worst == EQUAL
        for one, other in zip(actual, exact)
    )


@dataclass(slots=True)
class Tally:
    """Outcomes by bug. A bug with ``most`` effective injections is done."""

    most: int
    counts: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    hidden: list[str] = field(default_factory=list)  # what some program hid

    def needs(self, bug: str) -> bool:
        """Test whether a bug has to be injected into more programs."""
        found = self.counts[bug]
        return found.total() - found[UNSEEN] < self.most and found.total() < 8 * self.most

    def add(self, chunk: Chunk) -> None:
        """Add the outcomes of a chunk, except those of bugs that are done."""
        for told in chunk.tally("outcomes"):
            bug, _, outcome = told.rpartition(": ")
            if self.needs(bug):
                self.counts[bug][outcome] += 1
                self.hidden += filter(None, [chunk.notes.get(bug)])


def tallied(done: Done, numbers: Iterable[int], most: int) -> Tally:
    """Sum the outcomes of chunks, in this order."""
    tally = Tally(most)
    for found in filter(None, map(done.chunk, numbers)):
        tally.add(found)
    return tally


@dataclass(frozen=True, slots=True)
class Injections:
    """The plan of the campaign: each bug at one site of each program, until it had its effect
    ``most`` times. A chunk is one program: a model, or one of ``drawn`` for each opcode that has a
    bug, with either kind of arguments."""

    seed: int
    most: int
    drawn: int = 0

    @property
    def facts(self) -> Mapping[str, Any]:
        """All fields, which decide the outcome."""
        return {"campaign": "injection", **asdict(self)}

    @property
    def size(self) -> int:
        """The number of programs in a chunk: one."""
        return 1

    @property
    def memory(self) -> int | None:
        """No limit: programs are small."""
        return None

    def examiner(self, done: Done) -> AbstractContextManager[InjectionExaminer]:
        """Open an examiner, which skips the bugs that earlier chunks have shown often enough."""
        return nullcontext(InjectionExaminer(self, done, Tally(self.most)))

    def programs(self, rounds: int) -> int:
        """Count the programs of ``rounds`` passes over all opcodes, or over the models."""
        return rounds * (2 * self.drawn * len(OPCODES) if self.drawn else model_count())

    def case(self, number: int) -> Case | None:
        """Draw the program of a chunk; None if it cannot be judged."""
        if not self.drawn:
            return model(number, XLA_CPU, self.seed)
        turn, rest = divmod(number, self.programs(1))
        opcode, which = divmod(rest, 2 * self.drawn)
        return drawn(OPCODES[opcode], self.seed + turn, which, XLA_CPU)


@dataclass(slots=True)
class InjectionExaminer:
    """Injects bugs into programs; ``before`` has the outcomes of the first ``known`` chunks."""

    subject: Injections
    done: Done
    before: Tally
    known: int = 0

    def chunk(self, number: int, examples: Sequence[int] | None = None) -> Iterator[Part]:
        """Count outcomes by bug; ``notes`` say where one was hidden."""
        yield Part({0}, self._program(number))

    def _program(self, number: int) -> Chunk:
        found, given = Chunk(), self.subject.case(number)
        if given is None:
            found.count("counts", ["left out"])
            return found
        found.count("counts", ["programs"])
        self._look(number)
        for bug in BUGS:
            one = self._injected(bug, given, number) if self.before.needs(bug.name) else None
            if one is None:
                continue
            found.count("counts", ["injections"])
            found.count("outcomes", [f"{bug.name}: {one.outcome}"])
            if one.outcome in _HIDDEN:
                found.notes[bug.name] = described(one)
            if one.outcome == CONTRADICTION:
                found.suspects.append(_suspect(one))
        return found

    def _look(self, number: int) -> None:
        """Read the earlier chunks, up to the first unfinished one."""
        while self.known < number and (found := self.done.chunk(self.known)) is not None:
            self.before.add(found)
            self.known += 1

    def _injected(self, bug: Bug, given: Case, number: int) -> Injection | None:
        sites = [site for site in given.sites if bug.concerns(site.instruction)]
        if not sites:
            return None
        rng = np.random.default_rng([self.subject.seed, number, len(bug.name)])
        return injected(bug, given, sites[int(rng.integers(len(sites)))])

    def unreduced(self, suspect: Suspect) -> Finding:
        """Make a finding of the program as it is."""
        _, program = suspect.evidence
        return program_finding(suspect.kind, suspect.detail, program, program)

    def reduced(self, suspect: Suspect, number: int, seconds: float) -> Finding:
        """Reduce a program whose legal result is called wrong."""
        bug, program = suspect.evidence

        def is_wrong(module: Module, values: tuple[Value, ...]) -> bool:
            return CONTRADICTION in _outcomes(bug, module, values)

        small = program
        if is_wrong(program.module, program.arrays):
            small = Program(*fuzz.reduce(program.module, program.arrays, is_wrong, seconds=seconds))
        return program_finding(suspect.kind, suspect.detail, small, program)

    def write(self, number: int, example: int, folder: Path) -> None:
        """Write the program, if it can be judged."""
        given = self.subject.case(number)
        if given is not None:
            write_program(folder, "original", Program(given.module, given.values))


def _outcomes(bug: Bug, module: Module, values: tuple[Value, ...]) -> set[str]:
    """Inject a bug at all sites of a program; return the set of outcomes."""
    given = case("reduced", module, values, XLA_CPU)
    if given is None:
        return set()
    sites = [site for site in given.sites if bug.concerns(site.instruction)]
    return {one.outcome for site in sites if (one := injected(bug, given, site)) is not None}


def _suspect(found: Injection) -> Suspect:
    program = Program(found.case.module, found.case.values)
    kind = f"{found.outcome}: {found.bug.name}"
    evidence = found.bug, program
    return Suspect("injection", kind, described(found), 0, True, evidence)


def described(found: Injection) -> str:
    """Format where a bug was injected, and which instructions opened the envelope."""
    site = found.site.instruction
    openings = ", ".join(dict.fromkeys(o.opcode for o in found.case.judge.enclosed.openings))
    opened = f"; opened by {openings}" if openings else ""
    place = f"{found.case.name}: %{site.name} = {site.shape} {site.opcode}"
    return f"{found.outcome}: {found.bug.name}; {place}{opened}"
