"""The campaign over the table of functions: each is traced, run by XLA and judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import fuzz
import hlo
from fuzz.campaign.program_findings import program_finding, write_program
from fuzz.campaign.subject import Chunk, Done, Finding, Part, Suspect
from fuzz.draw.time_limit import TooLongError, time_limit
from fuzz.judge.failure import opcodes
from fuzz.peers.xla import XLA
from fuzz.reducer.search import Case
from hlo.errors import Error
from hlo_oracle import peer_verdicts
from hlo_oracle.peer_verdicts import Judgement
from interp.envelope.budget import XLA_CPU
from interp.envelope.verdict import OUTSIDE
from interp.evaluator import evaluate
from programs.known import find
from programs.table import all_functions
from programs.traced import REFUSALS, traced

TOO_LONG, CRASHED, REFUSED = "took too long", "crashed", "refused"


@dataclass(frozen=True, slots=True)
class FunctionCampaign:
    """Plan a campaign: chunk n is function n of ``names``, of arguments of ``floats`` where they
    are f32, each of them times ``scale``. ``seconds``: the limit of each."""

    names: tuple[str, ...]
    seed: int
    seconds: float
    floats: str = "f32"
    scale: float = 1.0

    @property
    def size(self) -> int:
        """One function in a chunk."""
        return 1

    @property
    def memory(self) -> int | None:
        """No limit: compilers run in processes of their own."""
        return None

    def case(self, number: int) -> Case:
        """Trace a function; raise what JAX raises of types that it does not take."""
        one = all_functions()[self.names[number]].with_floats(self.floats)
        arguments = one.arguments(self.seed, self.scale)
        return Case(hlo.parse(traced(one, arguments)), arguments)


@dataclass(frozen=True, slots=True)
class Functions(FunctionCampaign):
    """Judge XLA's results as ``hlo check --against xla`` does."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """All fields."""
        return {"campaign": "functions", **asdict(self)}

    @contextmanager
    def examiner(self, done: Done) -> Iterator[Examiner]:
        """Start XLA."""
        with XLA(timeout=self.seconds) as run:
            yield Examiner(self, run)


@dataclass(frozen=True, slots=True)
class Examiner:
    """Judge XLA's results of functions."""

    subject: Functions
    run: XLA

    def chunk(self, number: int, examples: Sequence[int] | None = None) -> Iterator[Part]:
        """Count the elements of a function by verdict; ``notes`` are the evidence."""
        yield Part({0}, self._function(number))

    def _function(self, number: int) -> Chunk:
        name, found = self.subject.names[number], Chunk()
        try:
            case = self.subject.case(number)
        except REFUSALS as error:  # of JAX, of other types than the function was written for
            found.count("counts", [REFUSED])
            found.notes[name] = f"{type(error).__name__}: {error}"
            return found
        found.count("counts", ["functions"])
        try:
            with time_limit(self.subject.seconds):
                judgement = self.judged(case)
        except TooLongError:
            found.count(name, [TOO_LONG])
            return found
        except Error as error:
            found.count(name, [REFUSED])
            found.notes[name] = f"{type(error).__name__}: {error}"
            return found
        self._count(name, judgement, found)
        if judgement.outside and find(name, self.subject.floats) is None:
            lines = "\n".join(judgement.outside)
            kind = f"{OUTSIDE}: {name}"
            found.suspects.append(Suspect("functions", kind, lines, 0, opcodes(case.module), case))
        return found

    def _count(self, name: str, judgement: Judgement, found: Chunk) -> None:
        if judgement.counts is None:
            found.count(name, [CRASHED if judgement.crash else REFUSED])
            found.notes[name] = judgement.crash or judgement.refused or ""
            return
        found.count(name, judgement.counts)
        found.count("counts", judgement.counts)
        lines = (*judgement.outside, *judgement.undetermined)
        if lines:
            found.notes[name] = "\n".join(lines)

    def judged(self, case: Case) -> Judgement:
        """Judge XLA's results as ``hlo check --against xla`` does."""
        values, text = tuple(case.arrays), hlo.format(case.module)
        exact = evaluate(case.module, *values)
        return peer_verdicts.peer_judgement(
            self.run, XLA_CPU, case.module, text, values, exact=exact, seed=self.subject.seed
        )

    def unreduced(self, suspect: Suspect) -> Finding:
        """Make a finding of the program as it is."""
        return program_finding(suspect.kind, suspect.detail, suspect.evidence, suspect.evidence)

    def reduced(self, suspect: Suspect, number: int, seconds: float) -> Finding:
        """Reduce a function to a small program that is outside, too."""
        case = suspect.evidence

        def is_outside(module: hlo.Module, values: tuple[Any, ...]) -> bool:
            try:
                return bool(self.judged(Case(module, values)).outside)
            except Error:
                return False

        small = Case(*fuzz.reduce(case.module, case.arrays, is_outside, seconds=seconds))
        detail = "\n".join(self.judged(small).outside)
        return program_finding(suspect.kind, detail or suspect.detail, small, case)

    def write(self, number: int, example: int, folder: Path) -> None:
        """Write the program as JAX gives it."""
        write_program(folder, "original", self.subject.case(number))
