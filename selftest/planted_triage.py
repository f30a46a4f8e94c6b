"""Triage drawn programs on a compiler with planted bugs: are its verdicts and groups right?

``python -m selftest.planted_triage --count 300 --state DIR`` draws programs, writes them as
StableHLO, has ``hlo triage`` judge, reduce and group what a compiler with 16 known bugs makes of
them, and prints a row for each bug: in how many programs it alone changes the result, what was
said of those, and the groups that blame its opcode. Exit status 1 if a program that no bug changes
is called wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import interp
from fuzz.campaign.directory import Directory
from fuzz.campaign.subject import Done, Examiner, Finding, Part, Suspect, whole
from fuzz.draw.seeded_programs import programs
from fuzz.draw.time_limit import TooLongError, time_limit
from fuzz.judge.failure import Against, opcodes
from fuzz.reducer.search import Case
from hlo.bit_equality import differences
from hlo.errors import Error
from hlo.module import Module
from hlo.values import Array, Value, arrays_of
from hlo_oracle import campaign_progress
from hlo_oracle.triage.inputs import inputs
from hlo_oracle.triage.subject import LEGAL, WRONG, Triage, Triager
from interp.envelope.budget import XLA_CPU
from interp.envelope.verdict import UNDETERMINED
from selftest import triage_examples
from selftest.injection.bug import Bug
from selftest.injection.peer import FUEL
from selftest.injection.planted import Planted, bugs

_NAME = "planted"  # of the compiler, in reports
_BUGS = "bugs of "  # before the name of a program: the note of what changes it
_SECONDS = 5  # for one program with one bug
_COLUMNS = (WRONG, UNDETERMINED, LEGAL)


@dataclass(frozen=True)
class PlantedTriage:
    """The plan of a triage whose compiler has planted bugs."""

    triage: Triage

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """Add the names of the bugs to the facts of the triage."""
        return {**self.triage.facts, "bugs": [bug.name for bug in bugs()]}

    @property
    def seed(self) -> int:
        """The seed of drawn arguments."""
        return self.triage.seed

    @property
    def size(self) -> int:
        """The number of programs in a chunk: one."""
        return self.triage.size

    @property
    def memory(self) -> int | None:
        """The memory limit of a worker, in bytes."""
        return self.triage.memory

    def examiner(self, done: Done) -> AbstractContextManager[Examiner]:
        """Open a triager of the compiler with bugs."""
        return _planted_triager(self.triage)


@contextmanager
def _planted_triager(triage: Triage) -> Iterator[PlantedTriager]:
    yield PlantedTriager(triage, Planted(bugs()))


class PlantedTriager:
    """Judges programs as triage does, and notes which bugs change each."""

    def __init__(self, triage: Triage, run: Planted) -> None:
        self._triage, self._run = triage, run
        self._triager = Triager(triage, Against(run, XLA_CPU, triage.seed), run)

    def chunk(self, number: int, examples: Sequence[int] | None = None) -> Iterator[Part]:
        """Judge a program and find the bugs that change it, in the program as it was read:
        StableHLO may have other instructions than the drawn one."""
        self._run.forget()
        found = whole(self._triager.chunk(number, examples))
        changing = [] if self._run.first is None else effective(*self._run.first)
        found.notes[_BUGS + self._triage.inputs[number].name] = json.dumps(changing)
        yield Part({0}, found)

    def unreduced(self, suspect: Suspect) -> Finding:
        """Make a finding of a program as it is."""
        return self._triager.unreduced(suspect)

    def reduced(self, suspect: Suspect, number: int, seconds: float) -> Finding:
        """Reduce a program that fails."""
        return self._triager.reduced(suspect, number, seconds)

    def write(self, number: int, example: int, folder: Path) -> None:
        """Copy a program as it was given."""
        self._triager.write(number, example, folder)


def effective(module: Module, values: Sequence[Value]) -> list[str]:
    """List the bugs that change a program's result, each alone."""
    try:
        exact = tuple(arrays_of(interp.evaluate(module, *values, fuel=FUEL)))
    except Error:
        return []
    return [bug.name for bug in bugs() if _changes(bug, module, values, exact)]


def _changes(bug: Bug, module: Module, values: Sequence[Value], exact: tuple[Array, ...]) -> bool:
    if not opcodes(module) & set(bug.opcodes):
        return False
    try:
        with time_limit(_SECONDS):
            return bool(differences(exact, tuple(Planted([bug]).results(module, values))))
    except (Error, TooLongError):
        return True  # it has none any more


def drawn(count: int, seed: int) -> Iterator[tuple[str, Case]]:
    """Draw programs, with names."""
    for number, (module, values) in zip(range(count), programs(seed)):
        yield f"{number:04}", Case(module, values)


def table(
    truth: Mapping[str, Sequence[str]], verdicts: Mapping[str, str], blamed: Sequence[str]
) -> Iterator[str]:
    """Yield a row for each bug, and one for programs that none changes. ``truth`` names the bugs of
    each program, ``blamed`` is the instruction to blame of each group."""
    yield f"| bug | programs | {' | '.join(_COLUMNS)} | other | groups |"
    yield "|:--|" + "--:|" * (3 + len(_COLUMNS))
    found = [text.partition("(")[0] for text in blamed]
    for bug in bugs():
        names = [name for name, planted in truth.items() if bug.name in planted]
        groups = sum(opcode in bug.opcodes for opcode in found)
        yield _row(bug.name, Counter(verdicts[name] for name in names), groups)
    every = {opcode for bug in bugs() for opcode in bug.opcodes}
    others = sum(opcode not in every for opcode in found)
    yield _row(
        "none", Counter(verdicts[name] for name, found in truth.items() if not found), others
    )


def _row(name: str, counts: Counter[str], groups: int) -> str:
    known = [counts[column] for column in _COLUMNS]
    cells = [counts.total(), *known, counts.total() - sum(known), groups]
    return f"| {name} | {' | '.join(map(str, cells))} |"


def main(words: Sequence[str] | None = None) -> int:
    """Draw, triage, and compare the outcome with the planted bugs."""
    parser = argparse.ArgumentParser(prog="python -m selftest.planted_triage", description=__doc__)
    parser.add_argument("--count", type=int, default=300, metavar="N", help="programs (300)")
    campaign_progress.add_options(parser)
    given = parser.parse_args(words)
    with campaign_progress.directory_of(given.state) as state:
        source = state / "programs"
        triage_examples.write(drawn(given.count, given.seed), source)
        found = tuple(inputs([source], state / "unpacked"))
        subject = PlantedTriage(Triage(found, _NAME, given.seed, None, state))
        totals = campaign_progress.run_here(state, subject, len(found), given)
        total = campaign_progress.watched(totals, state, "programs", lambda whole: "triage")
        told = {name: json.loads(text) for name, text in sorted(total.notes.items())}
        verdicts = {one.name: told[one.name][0] for one in found if one.name in told}
        truth = {name: told[_BUGS + name] for name in verdicts}
        groups = Directory(state, subject.facts).found()
        for row in table(truth, verdicts, [str(group["blamed"]) for group in groups]):
            print(row)
        print(f"{len(verdicts)} programs, {len(groups)} groups")
    wrong = [name for name in verdicts if verdicts[name] == WRONG and not truth[name]]
    for name in wrong:
        print(f"{name}: called wrong, and no bug changes it")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
