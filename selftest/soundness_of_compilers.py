"""Test that real compilers agree on nothing that is called wrong.

``python -m selftest.soundness_of_compilers --count N --seed S --minutes M --state DIR`` draws
programs as :mod:`selftest.soundness` does, and judges what compilers give that follow no budget
(:mod:`selftest.legal_compilers.independent`): XLA by many options, NumPy in three types, generated
C of ``fast``, PyTorch's kernels if PyTorch is installed, and two readings of the text. What is
outside is told apart by whether another family of compilers gives the same
(:mod:`selftest.agreement`): what several give is a false alarm until shown otherwise, and exit
status 1.
"""

from __future__ import annotations

import argparse
import re
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import fuzz
import hlo
from fuzz.campaign.directory import Directory
from fuzz.campaign.program_findings import program_finding, write_program
from fuzz.campaign.subject import Chunk, Done, Finding, Part, Suspect
from fuzz.draw.time_limit import TooLongError, time_limit
from fuzz.judge.failure import Against
from fuzz.judge.undefined_behaviour import left_open, undefined
from fuzz.peers.layouts import reads_layouts
from fuzz.peers.xla import XLA, Answer
from fuzz.reducer.search import Case
from hlo.errors import Error
from hlo.module import Module
from hlo.values import Array, arrays_of
from hlo_oracle import campaign_progress
from interp.envelope.judgement import Judge
from interp.envelope.verdict import KINDS
from interp.evaluator import evaluate
from interp.values import Value
from selftest.agreement import ALONE, CLASSES, SHARED, Judged, classes, specials
from selftest.legal_compilers import generated_c
from selftest.legal_compilers.independent import (
    FUEL,
    GENERATED_C,
    XLA_SETS,
    Compiler,
    of_answer,
    of_numpy,
    of_text,
    of_torch,
    of_xla,
)
from selftest.legal_compilers.torch_kernels import has_torch
from selftest.soundness import drawn

_SECONDS = 60.0  # for one program
_XLA_SECONDS = 20.0  # for one program by one set of options
_FALSE_ALARM, _UNKNOWN = "false alarm", "unknown"
_FAILURE = f"{GENERATED_C} fails"
_ORACLE = "soundness of compilers"


@dataclass(frozen=True, slots=True)
class Examined:
    """Results of a program. ``judged``: the compilers that gave some; ``outside``: their elements
    outside by class; ``others``: those that gave none, with their answers."""

    case: Case
    judged: Sequence[Judged]
    outside: Mapping[str, Counter[str]]
    others: Sequence[tuple[Compiler, Answer]]

    def wrong(self) -> dict[str, str]:
        """Describe what is outside, by kind: shared, or the family that is alone, with the opcode
        of the first wrong step. XLA by fast math counts as a family of its own where XLA without it
        is not outside. Generated C of a legal program that does not compile, or crashes, is a
        fault of this project's."""
        found: dict[str, str] = {}
        for compiler, answer in self.others:
            if answer.crash is not None and compiler.family == GENERATED_C:
                found[f"{_FAILURE}: {_cause(answer.crash)}"] = answer.crash
        families = set[str]()
        for one in self.judged:
            compiler, counts = one.compiler, self.outside.get(one.compiler.name, Counter())
            if counts[SHARED]:
                found.setdefault(_FALSE_ALARM, self._described(SHARED))
            if counts[ALONE] and compiler.family not in families:
                families.add(compiler.family)
                kind = f"{compiler.name if compiler.is_fast else compiler.family} alone"
                detail = self._described(ALONE)
                found[f"{kind}: {_culprit(compiler, self.case)}"] = detail
        return found

    def _described(self, kind: str) -> str:
        named = (f"{name}: {n[kind]}" for name, n in self.outside.items() if n[kind])
        return f"elements outside, {kind}: {', '.join(named)}"


def _cause(told: str) -> str:
    """Return what a C compiler, or a signal, says first, without places and names."""
    line = next((line for line in told.splitlines() if "error: " in line), told)
    return re.sub(r"'[^']*'|\d+", "…", line.rpartition("error: ")[2])[:80]


def _culprit(compiler: Compiler, case: Case) -> str:
    """Return the opcode of the first wrong step on the compiler's own values, ``_UNKNOWN`` if none
    is."""

    def run(text: str, arrays: Sequence[Array]) -> Answer:
        del arrays  # flattened
        return compiler.run(hlo.parse(text), case.arrays)

    return Against(run, compiler.budget).culprit(case.module, case.arrays) or _UNKNOWN


def examined(case: Case, compilers: Iterable[Compiler]) -> Examined:
    """Judge the results of compilers. Raises Error for a program without an exact result."""
    result = evaluate(case.module, *case.arrays, fuel=FUEL)
    exact = [(str(number), array) for number, array in enumerate(arrays_of(result))]
    judges: dict[str, Judge] = {}
    judged, others = list[Judged](), list[tuple[Compiler, Answer]]()
    for compiler in compilers:
        answer = compiler.run(case.module, case.arrays)
        if answer.outputs is None:
            others.append((compiler, answer))
            continue
        name = compiler.budget.name
        judge = judges.get(name)
        if judge is None:
            judge = judges[name] = Judge(case.module, case.arrays, exact, peer=compiler.budget)
        found = judge.judged(answer.outputs, _asking(compiler, case.arrays))
        judged.append(Judged(compiler, found))
    if not any(one.is_outside for one in judged):
        return Examined(case, judged, {}, others)
    return Examined(case, judged, classes(judged, specials(case.module, case.arrays)), others)


def _asking(
    compiler: Compiler, arrays: Sequence[Value]
) -> Callable[[Module], Sequence[Array] | None]:
    return lambda module: compiler.run(module, arrays).outputs


def is_for_xla(case: Case) -> bool:
    """Test whether a program has defined behaviour, also without layouts, which are lost on the way
    into XLA; a program without may corrupt XLA's process."""
    return undefined(case.module, case.arrays) is None and not reads_layouts(case.module)


class Programs(Protocol):
    """The programs of a campaign: ``size`` in a chunk, each taking at most ``seconds``, by XLA with
    ``xla_sets`` of options at most."""

    @property
    def size(self) -> int: ...
    @property
    def xla_sets(self) -> int: ...
    @property
    def seconds(self) -> float: ...

    def cases(self, number: int) -> list[Case]:
        """Return the programs of a chunk with their arguments."""


@contextmanager
def examiner(programs: Programs) -> Iterator[CompilersExaminer]:
    """Start the processes of compilers."""
    with ExitStack() as stack:
        peer = stack.enter_context(XLA(timeout=_XLA_SECONDS))
        yield CompilersExaminer(programs, peer, stack.enter_context(generated_c.fast()))


@dataclass(frozen=True, slots=True)
class SoundnessOfCompilers:
    """Plan the campaign over drawn programs."""

    seed: int
    size: int = 25
    xla_sets: int = 3
    seconds: float = _SECONDS

    @property
    def facts(self) -> Mapping[str, Any]:
        """All fields, which decide the outcome."""
        facts = {"seed": self.seed, "size": self.size, "xla_sets": self.xla_sets}
        return {"campaign": "soundness of compilers", **facts}

    @property
    def memory(self) -> int | None:
        """No limit: drawn programs are small, and compilers have processes of their own."""
        return None

    def examiner(self, done: Done) -> AbstractContextManager[CompilersExaminer]:
        """Start the processes of compilers; no other chunks are needed."""
        del done
        return examiner(self)

    def cases(self, number: int) -> list[Case]:
        """Draw the programs of a chunk."""
        return drawn(self.seed, number, self.size)


@dataclass(frozen=True, slots=True)
class CompilersExaminer:
    """Judges the results of compilers."""

    subject: Programs
    peer: XLA
    c: generated_c.Run

    def chunk(self, number: int, examples: Sequence[int] | None = None) -> Iterator[Part]:
        """Count programs, and by compiler: programs, elements by verdict, and those outside by
        class."""
        cases = self.subject.cases(number)
        chosen = [n for n in range(len(cases)) if examples is None or n in examples]
        answers = self.c([cases[n] for n in chosen], number)
        for example, answer in zip(chosen, answers, strict=True):
            case, found = cases[example], Chunk()
            found.count("counts", {"programs": 1})
            wrong = self._examined(found, case, number, example, answer)
            found.count("counts", wrong.keys())
            found.suspects.extend(
                Suspect(_ORACLE, kind, detail, example, _is_told_by_reduction(kind), case)
                for kind, detail in wrong.items()
            )
            yield Part({example}, found)

    def _examined(
        self, found: Chunk, case: Case, number: int, example: int, answer: Answer
    ) -> Mapping[str, str]:
        try:
            with time_limit(self.subject.seconds):
                one = examined(case, self._compilers(case, number, example, answer))
                wrong = one.wrong()
                if wrong and left_open(case.module, case.arrays) is not None:
                    found.count("counts", {"open": 1})
                    return {}
        except TooLongError:
            found.count("counts", {"took too long": 1})
            return {}
        except Error as error:
            found.count("counts", {f"refused: {type(error).__name__}": 1})
            return {}
        except Exception as error:  # to find any other exception is a purpose
            return {_defect(error): str(error)}
        _count(found, one)
        return wrong

    def _compilers(
        self, case: Case, number: int, example: int, answer: Answer | None
    ) -> Iterator[Compiler]:
        seed = example + number * self.subject.size
        if is_for_xla(case):
            yield from of_xla(self.peer, seed, self.subject.xla_sets)
        yield from of_numpy(case.module)
        yield from of_torch()
        yield from of_text(seed)
        yield of_answer(case, answer)

    def unreduced(self, suspect: Suspect) -> Finding:
        """Make a finding of the program as it is."""
        return program_finding(suspect.kind, suspect.detail, suspect.evidence, suspect.evidence)

    def reduced(self, suspect: Suspect, number: int, seconds: float) -> Finding:
        """Reduce a program to a small one with the same fault, by all compilers; XLA with the
        options that the program was run with."""
        case = suspect.evidence
        is_of_c = GENERATED_C in suspect.kind or "C, fast" in suspect.detail

        def wrong(module: Module, values: tuple[Value, ...]) -> str | None:
            small = Case(module, values)
            (answer,) = self.c([small], number) if is_of_c else (None,)
            try:
                made = self._compilers(small, number, suspect.example, answer)
                found = examined(small, made).wrong().get(suspect.kind)
                return None if left_open(module, values) is not None else found
            except Error:
                return None
            except Exception as error:
                return str(error) if _defect(error) == suspect.kind else None

        def is_wrong(module: Module, values: tuple[Value, ...]) -> bool:
            return wrong(module, values) is not None

        if not is_wrong(case.module, case.arrays):  # it took too long this time
            return program_finding(suspect.kind, suspect.detail, case, case)
        small = Case(*fuzz.reduce(case.module, case.arrays, is_wrong, seconds=seconds))
        detail = wrong(small.module, small.arrays) or suspect.detail
        return program_finding(suspect.kind, detail, small, case)

    def write(self, number: int, example: int, folder: Path) -> None:
        """Write the program as it is drawn."""
        write_program(folder, "original", self.subject.cases(number)[example])


def _defect(error: Exception) -> str:
    """Return the kind of an exception that no program should raise: its type and place."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"defect: {type(error).__name__} in {Path(last.filename).name}:{last.name}"


def _is_told_by_reduction(kind: str) -> bool:
    """Test for a kind without an opcode to blame, which reduction may find."""
    return kind == _FALSE_ALARM or kind.endswith(f": {_UNKNOWN}")


def _count(found: Chunk, one: Examined) -> None:
    for judged in one.judged:
        name, counts = judged.compiler.name, judged.found.counts
        found.count(name, {"programs": 1, **{kind: counts.get(kind, 0) for kind in KINDS}})
        found.count(name, {"steps": sum(x.verdict.counts["outside"] for x in judged.found.wrong)})
        found.count(name, one.outside.get(name, {}))
    for compiler, answer in one.others:
        found.count(compiler.name, {"refused" if answer.crash is None else "crashed": 1})


_COLUMNS = ("programs", "refused", "crashed", *KINDS, "steps", *CLASSES)


def table(directory: Directory, total: Chunk) -> Iterator[str]:
    """Yield the table by compiler."""
    del directory
    yield "| compiler | " + " | ".join(_COLUMNS) + " |"
    yield "|:--|" + "--:|" * len(_COLUMNS)
    for name in sorted(set(total.tallies) - {"counts"}):
        counts = total.tally(name)
        yield f"| {name} | " + " | ".join(f"{counts[column]:,}" for column in _COLUMNS) + " |"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m selftest.soundness_of_compilers", description=__doc__
    )
    parser.add_argument("--count", type=int, default=1000, help="programs in all, at least")
    parser.add_argument("--chunk", type=int, default=25, help="programs in a chunk: n is of it")
    parser.add_argument(
        "--xla",
        type=int,
        default=3,
        metavar="N",
        help=f"sets of options by which XLA is asked for a program, of {XLA_SETS} in turn; 0: none",
    )
    campaign_progress.add_options(parser, workers=0)
    given = parser.parse_args(words)
    subject = SoundnessOfCompilers(given.seed, given.chunk, given.xla)
    return status(subject, given.count, given, "programs")


def status(subject: Any, count: int, given: argparse.Namespace, what: str) -> int:
    """Run a campaign over ``count`` programs; return the exit status, 1 for false alarms."""
    if not has_torch():
        print(
            "PyTorch is not among the compilers: pip install 'hlo-oracle[torch]'", file=sys.stderr
        )
    found: list[Mapping[str, Any]] = []
    campaign_progress.run(
        subject,
        count,
        given,
        what,
        _line,
        table=table,
        finish=lambda directory: found.extend(directory.found()),
    )
    return int(any(one["kind"] == _FALSE_ALARM for one in found))


def _line(total: Chunk) -> str:
    return ", ".join(f"{n:,} {name}" for name, n in total.counts.items() if name != "chunks")


if __name__ == "__main__":
    sys.exit(main())
