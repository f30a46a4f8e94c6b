"""Put each bug into programs, judge what comes out as ``hlo check --against`` does, and count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fuzz.draw.time_limit import TooLongError, time_limit
from hlo.errors import Error, OutOfFuel
from interp.envelope.budget import XLA_CPU, Budget
from interp.envelope.enclosure import point
from interp.envelope.verdict import EQUAL, OUTSIDE, UNDETERMINED, judged
from selftest.injection.bug import Array, Bug
from selftest.injection.cases import Case, drawn
from selftest.injection.peer import Injected, NoBugError, Site, is_allowed

UNSEEN, ENDLESS = "no effect", "endless"
ALLOWED, MISSED = "allowed", "missed"
# A verdict against a result that follows from what each instruction may do: never.
CONTRADICTION = "contradiction"
OUTCOMES = (UNSEEN, ENDLESS, ALLOWED, OUTSIDE, UNDETERMINED, MISSED, CONTRADICTION)
SECONDS = 5  # for one injection


@dataclass(frozen=True, slots=True)
class Injection:
    """A bug in a program, and what the verdict made of it."""

    bug: Bug
    case: Case
    site: Site
    outcome: str


def injected(bug: Bug, case: Case, site: Site, budget: Budget = XLA_CPU) -> Injection | None:
    """None where the bug cannot be."""
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
    """But for NaNs' bits and signs of zeros, which no verdict is about."""
    return len(actual) == len(exact) and all(
        one.shape == other.shape and judged(one, other, point(other)).worst == EQUAL
        for one, other in zip(actual, exact)
    )


@dataclass(slots=True)
class Tally:
    """The outcomes so far. ``most``: effective injections of one bug, after which it is done."""

    most: int
    counts: dict[str, Counter[str]]

    def needs(self, bug: Bug) -> bool:
        found = self.counts[bug.name]
        return found.total() - found[UNSEEN] < self.most and found.total() < 8 * self.most


def campaign(
    bugs: Sequence[Bug],
    cases: Iterable[Case],
    most: int,
    seed: int = 0,
    note: Callable[[Injection], None] = lambda injection: None,
) -> Tally:
    """Each bug at one site of each case, until it had its effect ``most`` times."""
    tally = Tally(most, {bug.name: Counter() for bug in bugs})
    for number, case in enumerate(cases):
        for bug in bugs:
            sites = [site for site in case.sites if bug.concerns(site.instruction)]
            if not sites or not tally.needs(bug):
                continue
            rng = np.random.default_rng([seed, number, len(bug.name)])
            found = injected(bug, case, sites[int(rng.integers(len(sites)))])
            if found is not None:
                tally.counts[bug.name][found.outcome] += 1
                note(found)
    return tally


def stream(bugs: Sequence[Bug], rounds: int, count: int, seed: int) -> Iterator[Case]:
    """Drawn cases, ``count`` programs for each opcode that has a bug, again and again."""
    opcodes = sorted({opcode for bug in bugs for opcode in bug.opcodes[:1]})
    for number in range(rounds):
        for opcode in opcodes:
            yield from drawn(opcode, seed + number, count, XLA_CPU)
