"""Examine drawn programs by oracles: the examiner of ``hlo fuzz``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import hlo
from fuzz.campaign.findings import is_unplaced
from fuzz.campaign.program_findings import (
    program_finding,
    reduced_case,
    told_of,
    write_both,
    write_program,
)
from fuzz.campaign.subject import Chunk, Finding, Part, Suspect
from fuzz.campaign.text_findings import text_finding, unreduced_text
from fuzz.judge.blame import alone, blamed, computing
from fuzz.judge.failure import Judged, opcodes
from fuzz.oracles import Difference, LeftOut, Outcome
from fuzz.oracles.isolation import by_name, narrower
from fuzz.oracles.oracle import Property
from fuzz.oracles.table import named
from fuzz.reducer.search import Case
from fuzz.report import Report, write
from hlo.types import leaves

_MOST_STEPS = 8  # of a program that is wrong everywhere


@contextmanager
def examiner(
    drawn: Callable[[int], Sequence[Case]], oracles: Sequence[str]
) -> Iterator[OracleExaminer]:
    """Open oracles by name, each isolated from crashes; ``drawn`` draws the programs of a chunk."""
    with ExitStack() as stack:
        properties = {name: stack.enter_context(by_name(name)) for name in oracles}
        yield OracleExaminer(drawn, properties, {name for name in oracles if named(name).together})


@dataclass(frozen=True, slots=True)
class OracleExaminer:
    """Test each drawn program by every oracle; by those of ``together`` all programs at once."""

    drawn: Callable[[int], Sequence[Case]]
    properties: Mapping[str, Property]
    together: Collection[str] = ()

    def chunk(self, number: int, examples: Sequence[int] | None = None) -> Iterator[Part]:
        """Count outcomes by oracle, and instructions by opcode and element type (coverage), of one
        program after the other."""
        drawn = self.drawn(number)
        numbers = range(len(drawn)) if examples is None else examples
        cases = [drawn[example] for example in numbers]
        at_once = {name: self.properties[name](cases) for name in self.together}
        for place, (example, case) in enumerate(zip(numbers, cases, strict=True)):
            found = Chunk()
            found.count("counts", {"programs": 1})
            found.count("coverage", covered(case))
            seen: dict[object, str] = {}  # failures, and the oracle that found them
            for oracle, of in self.properties.items():
                known = at_once.get(oracle)
                (outcome,) = of([case]) if known is None else [known[place]]
                for suspect in self._counted(oracle, example, case, outcome, found):
                    if seen.setdefault(_failure(suspect), oracle) == oracle:
                        found.suspects.append(suspect)
            yield Part({example}, found)

    def _counted(
        self, oracle: str, example: int, case: Case, outcome: Outcome, found: Chunk
    ) -> Iterator[Suspect]:
        """Count an outcome; yield the suspects of a difference."""
        match outcome:
            case None:
                found.count("counts", [f"{oracle}: holds"])
            case LeftOut(reason, said):
                name = f"{oracle}: left out, {reason}"
                found.count("counts", [name])
                if said:
                    found.notes[name] = said
            case Difference():
                found.count("counts", [f"{oracle}: violated"])
                yield from self._suspects(oracle, example, case, outcome)

    def _suspects(
        self, oracle: str, example: int, drawn: Case, found: Difference
    ) -> Iterator[Suspect]:
        """Yield a suspect for each instruction that fails alone, or one for the whole program.

        If the oracle tested another program, derived from the drawn one, the suspect belongs to the
        oracle that tests such programs directly, so that what both find is one finding.
        """
        case = drawn if found.case is None else found.case
        asked = oracle if found.case is None else found.oracle
        # Of a text the kind says all, but for crashes and hangs that many texts share.
        is_alike = found.text is None or is_unplaced(found.kind)
        for small, outcome in self._isolated(oracle, case, found):
            isolated = None if small is None else told_of(small)
            evidence = Evidence(oracle, outcome, case, small or case)
            kind, detail = outcome.kind, outcome.detail
            has = opcodes(evidence.begin.module) if found.text is None else None
            suspect = Suspect(
                asked, kind, detail, example, is_alike, evidence, isolated, opcodes=has
            )
            # Crashes by damaged memory are not: they end a process for each program that is tried.
            if small is None and outcome.blame is not None:
                suspect = replace(suspect, narrowed=partial(self._narrowed, suspect))
            yield suspect

    def _narrowed(self, suspect: Suspect, seconds: float) -> Suspect:
        """Cut a program none of whose instructions was seen to fail alone to those that fail; the
        suspect as it is if it does not fail again."""
        evidence: Evidence = suspect.evidence
        with self._asked(evidence.oracle, evidence.found) as asked:
            # What is left may be known: simpler numbers, sizes and types come after, by
            # :meth:`reduced`.
            small = reduced_case(asked, evidence.begin, suspect.kind, seconds, is_plain=False)
        if small is None:
            return suspect
        return replace(
            suspect,
            isolated=told_of(small),
            several=len(computing(small.module.entry)) > 1,
            evidence=replace(evidence, begin=small),
        )

    def _isolated(
        self, oracle: str, case: Case, found: Difference
    ) -> Sequence[tuple[Case | None, Difference]]:
        """Cut a program to each of its wrong instructions, with the compiler's own values as
        operands; return those that fail alone too: others are wrong only because an operand is.
        Unless the first fails in the same way as the program, the uncut program (None) is returned
        as well."""
        steps = () if found.blame is None else found.blame(case)[:_MOST_STEPS]
        smaller = [alone(step) for step in steps]
        if not smaller or smaller[0] is None:
            return [(None, found)]
        # The program is that one step already, which has just failed: it is not asked again.
        if len(smaller) == 1 and smaller[0].module == case.module:
            return [(case, found)]
        cut = [small for small in smaller if small is not None]
        with self._asked(oracle, found) as asked:
            outcomes = asked(cut)
        # Not judged: the compiler's own values are no arguments, as they are of another type.
        kept: list[tuple[Case | None, Difference]] = [
            (small, replace(found, kind=told.kind, detail=told.detail))
            for small, told in zip(cut, outcomes, strict=True)
            if isinstance(told, Difference) and told.judged
        ]
        is_alike = kept and kept[0][0] is cut[0] and kept[0][1].kind == found.kind
        if is_alike:
            return kept
        return [(None, found), *(one for one in kept if one[0] is not cut[0])]

    def _asked(self, oracle: str, found: Difference) -> AbstractContextManager[Property]:
        """Open the oracle for smaller programs; one that is open already is reused."""
        there = self.properties.get(found.oracle)
        return narrower(found, self.properties[oracle]) if there is None else nullcontext(there)

    def unreduced(self, suspect: Suspect) -> Finding:
        """Make a finding of a suspect's program, cut as far as it is."""
        evidence: Evidence = suspect.evidence
        found, case, begin = evidence.found, evidence.case, evidence.begin
        if found.text is not None:
            return unreduced_text(found.kind, found.detail, found.text.text)
        told = program_finding(found.kind, found.detail, begin, case)
        if found.judged is None or begin is not case:  # of which the evidence is not
            return told
        return replace(told, write=partial(_write_with_report, found.judged, begin, case))

    def reduced(self, suspect: Suspect, number: int, seconds: float) -> Finding:
        """Reduce a suspect's program; one that does not fail again, alone and reduced, is kept as
        it is, and marked flaky unless it fails in another way, as what reads memory that nobody
        wrote may each time."""
        evidence: Evidence = suspect.evidence
        found, case = evidence.found, evidence.case
        if found.text is not None:
            text, breaks = found.text.text, found.text.breaks
            return text_finding(found.kind, found.detail, text, breaks, seconds)
        with self._asked(evidence.oracle, found) as asked:
            small = reduced_case(asked, evidence.begin, found.kind, seconds)
            (outcome,) = [None] if small is None else asked([small])
            if small is not None and isinstance(outcome, Difference):
                return _finding(outcome, small, case)  # it asks once more, for what is to blame
            (again,) = asked([evidence.begin])
            if isinstance(again, Difference):
                return _finding(again, evidence.begin, case)
        return replace(_finding(found, case, case), is_flaky=True)

    def write(self, number: int, example: int, folder: Path) -> None:
        """Write the program as drawn."""
        write_program(folder, "original", self.drawn(number)[example])


@dataclass(frozen=True, slots=True)
class Evidence:
    """Hold the oracle's difference, the program, and the program that its reduction starts with."""

    oracle: str
    found: Difference
    case: Case
    begin: Case


def _failure(suspect: Suspect) -> object:
    """Identify a failure of an example, whichever oracle finds it: what fails with arguments most
    often fails in the same way with constants instead, and is one defect."""
    isolated = suspect.isolated
    blamed = None if isolated is None else isolated.blamed.replace("constant ", "")
    return suspect.example, suspect.kind, blamed


def _finding(found: Difference, small: Case, original: Case) -> Finding:
    """Make a finding of a reduced difference, with a report if another compiler is at fault."""
    told = program_finding(found.kind, found.detail, small, original)
    if found.judged is None:
        return told
    steps = found.blame(small) if found.blame is not None else ()
    culprit = steps[0].instruction.opcode if steps else None
    return replace(
        told,
        write=partial(_write_with_report, found.judged, small, original),
        blamed=blamed(small, found.judged.failure, culprit),
    )


def _write_with_report(judged: Judged, small: Case, original: Case, folder: Path) -> None:
    write_both(small, original, folder)
    text = hlo.format(original.module).encode()
    report = Report(small.module, small.arrays, judged, text, original.arrays)
    write(report, folder / "report")


def covered(case: Case) -> Counter[str]:
    """Count the pairs of opcode and element type in a program."""
    found: Counter[str] = Counter()
    for computation in case.module.computations:
        for instruction in computation.instructions:
            for leaf in leaves(instruction.shape):
                found[f"{instruction.opcode} {leaf.element_type}"] += 1
    return found
