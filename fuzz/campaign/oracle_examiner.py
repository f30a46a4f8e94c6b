"""Drawn programs asked of oracles: what a chunk of a fuzzing campaign is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import fuzz
import hlo
from fuzz.campaign.program_findings import program_finding, write_both, write_program
from fuzz.campaign.subject import Chunk, Finding, Suspect
from fuzz.judge.failure import Judged, opcodes
from fuzz.oracles import Difference, LeftOut
from fuzz.oracles.isolation import by_name, narrower
from fuzz.oracles.oracle import Property
from fuzz.oracles.violation import Violation
from fuzz.reducer.search import Case
from fuzz.report import Report, write
from hlo.types import leaves


@contextmanager
def opened(
    drawn: Callable[[int], Sequence[Case]], oracles: Sequence[str]
) -> Iterator[OracleExaminer]:
    """Programs that ``drawn`` gives by the number of a chunk, and oracles by name, each where a
    crash does no harm."""
    with ExitStack() as stack:
        properties = {name: stack.enter_context(by_name(name)) for name in oracles}
        yield OracleExaminer(drawn, properties)


@dataclass(frozen=True, slots=True)
class OracleExaminer:
    """Asks each program for every property."""

    drawn: Callable[[int], Sequence[Case]]
    properties: Mapping[str, Property]

    def chunk(self, number: int, only: int | None = None) -> Chunk:
        """``counts`` are of outcomes by oracle, ``coverage`` of instructions by opcode and type."""
        numbered = [*enumerate(self.drawn(number))]
        if only is not None:
            numbered = [numbered[only]]
        cases, found = [case for _, case in numbered], Chunk()
        found.count("counts", {"programs": len(cases)})
        for case in cases:
            found.count("coverage", covered(case))
        for oracle, of in self.properties.items():
            for (example, case), outcome in zip(numbered, of(cases), strict=True):
                match outcome:
                    case None:
                        found.count("counts", [f"{oracle}: holds"])
                    case LeftOut(reason):
                        found.count("counts", [f"{oracle}: left out, {reason}"])
                    case Difference():
                        found.count("counts", [f"{oracle}: violated"])
                        found.suspects.append(_suspect(oracle, example, case, outcome))
        return found

    def reduced(self, suspect: Suspect, number: int, seconds: float) -> Finding:
        """One that is not seen again in the program alone is kept as it is."""
        found, case = suspect.evidence
        with narrower(found, self.properties[suspect.oracle]) as asked:
            small = _small(asked, case, found.kind, seconds)
            (outcome,) = asked([small])
        if isinstance(outcome, Difference):
            return _finding(outcome, small, case)
        return _finding(found, case, case)

    def write(self, number: int, example: int, folder: Path) -> None:
        """The program as it is drawn."""
        write_program(folder, "original", self.drawn(number)[example])


def _suspect(oracle: str, example: int, drawn: Case, found: Difference) -> Suspect:
    case = found.case or drawn
    evidence = found, case
    return Suspect(oracle, found.kind, found.detail, example, opcodes(case.module), evidence)


def _small(of: Property, case: Case, kind: str, seconds: float) -> Case:
    """A small program that violates the property in the same way; the program itself if it does
    not, alone."""
    violation = Violation(of, kind)
    if not violation(case.module, case.arrays):
        return case
    return Case(*fuzz.reduce(case.module, case.arrays, violation, seconds=seconds))


def _finding(found: Difference, small: Case, original: Case) -> Finding:
    """With a report of another compiler's."""
    told = program_finding(found.kind, found.detail, small, original)
    if found.judged is None:
        return told
    return replace(told, write=partial(_write_with_report, found.judged, small, original))


def _write_with_report(judged: Judged, small: Case, original: Case, folder: Path) -> None:
    write_both(small, original, folder)
    text = hlo.format(original.module).encode()
    report = Report(small.module, small.arrays, judged, text, original.arrays)
    write(report, folder / "report")


def covered(case: Case) -> Counter[str]:
    """The pairs of opcode and element type in a program."""
    found: Counter[str] = Counter()
    for computation in case.module.computations:
        for instruction in computation.instructions:
            for leaf in leaves(instruction.shape):
                found[f"{instruction.opcode} {leaf.element_type}"] += 1
    return found
