"""Test that no legal result is called wrong: programs, run as legal compilers would, and judged.

``python -m selftest.soundness --count N --seed S --workers W --minutes M --state DIR`` draws
programs and arguments, runs each as several legal compilers
(:mod:`selftest.legal_compilers.compiler`) and judges what they give as ``hlo check --against``
does. It is a campaign (:mod:`fuzz.campaign`): program number n of a seed is always the same, with a
directory a run goes on where the last one ended, and what is outside is there, reduced. Exit status
1 if anything is.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fuzz
import hlo
from fuzz.campaign.program_findings import program_finding, write_program
from fuzz.campaign.subject import Chunk, Done, Finding, Part, Suspect
from fuzz.draw.choices import Choices, examples
from fuzz.draw.programs import program
from fuzz.draw.time_limit import TooLongError, time_limit
from fuzz.draw.values import arguments
from fuzz.reducer.search import Case
from hlo.errors import Error
from hlo.module import Module
from hlo.types import BF16, C64, F16, F32, F64
from hlo.values import arrays_of
from hlo_oracle import campaign_progress
from interp.envelope.budget import EXACT, UNKNOWN, XLA_CPU, Budget
from interp.envelope.judgement import Judge
from interp.envelope.trying import Found
from interp.envelope.verdict import KINDS, OUTSIDE
from interp.evaluator import evaluate
from interp.values import Value
from selftest.injection.cases import PROGRAMS, model_arguments
from selftest.legal_compilers.compiler import Perturbed
from selftest.legal_compilers.errors import MODES
from selftest.legal_compilers.literal import Literal
from selftest.legal_compilers.over_the_reals import OverTheReals, has_extended_precision

FUEL = 100_000
SECONDS = 30  # for one program
Compiler = Callable[..., Value]
_RUNS = 2  # legal compilers for each program
_BUDGETS = (XLA_CPU, UNKNOWN, XLA_CPU, EXACT)

# What is drawn, chunk by chunk: everything, or float instructions that round.
_ROUNDING: tuple[str, ...] = (
    *("add", "subtract", "multiply", "divide", "sqrt", "exponential", "log", "tanh", "power"),
    *("reduce", "reduce-window", "dot", "convolution", "scatter", "select-and-scatter", "convert"),
    *("broadcast", "transpose", "reshape", "concatenate", "select", "compare", "maximum", "while"),
    *("fft", "batch-norm-training", "sort", "abs", "logistic", "rsqrt", "sine", "reduce-precision"),
)
_KINDS: tuple[dict[str, Any], ...] = (
    {},
    {"element_types": (F32, BF16, F16), "opcodes": _ROUNDING},
    {},
    {"element_types": (F32, F64, C64), "opcodes": _ROUNDING},
)


def drawn(seed: int, chunk: int, count: int) -> list[Case]:
    """Draw the programs of a chunk with arguments."""

    def one(choices: Choices) -> Case:
        length = choices.integer(1, 25)
        module = program(choices, max_instructions=length, **_KINDS[chunk % len(_KINDS)])
        return Case(module, arguments(choices, module))

    found = examples(one, count, f"{seed} {chunk}")
    return found[: count - 1] + [model(seed, chunk)] if chunk % 2 else found[:count]


def model(seed: int, chunk: int) -> Case:
    """Draw a small model's arguments, as models get them."""
    paths = sorted(PROGRAMS.glob("*.hlo"))
    module = hlo.parse(paths[chunk // 2 % len(paths)].read_text())
    rng = np.random.default_rng([seed, chunk])
    return Case(module, model_arguments(module, rng))


def verdicts(
    module: Module, values: Sequence[Value], seed: int, budget: Budget | None = None
) -> Iterator[tuple[str, Found]]:
    """Yield the verdict on the results of several legal compilers, each with its budget and mode;
    the budget depends on ``seed`` if none is given."""
    exact = arrays_of(evaluate(module, *values, fuel=FUEL))
    budget = budget or _BUDGETS[seed % len(_BUDGETS)]
    judge = Judge(module, values, [("", array) for array in exact], peer=budget)
    for run in range(_RUNS):
        mode = MODES[(seed + run * 2) % len(MODES)]
        peer = Perturbed(budget, seed + run, mode)
        actual = _results(peer, tuple(values), module)
        found = judge.judged(actual, partial(_results, peer, tuple(values)))
        yield f"{budget.name}, {mode}", found
    # The followers round differently from the definition, which an exact budget does not allow.
    if budget is EXACT:
        return
    followers: dict[str, Compiler] = {"literally": Literal()}
    if has_extended_precision() and budget.rewrites:
        followers["over the reals"] = OverTheReals(seed)
    for name, compiler in followers.items():
        actual = _results(compiler, tuple(values), module)
        yield (
            f"{budget.name}, {name}",
            judge.judged(actual, partial(_results, compiler, tuple(values))),
        )


def _results(
    peer: Compiler, values: tuple[Value, ...], module: Module
) -> list[np.ndarray[Any, Any]]:
    return list(arrays_of(peer(module, *values, fuel=FUEL)))


class Examined(NamedTuple):
    """Counts of runs and of elements by verdict; ``wrong`` describes each fault, by kind."""

    counts: Counter[str]
    wrong: dict[str, str]


def examined(module: Module, values: Sequence[Value], seed: int) -> Examined:
    """Run a program as several legal compilers, and judge each result."""
    counts, wrong = Counter[str](), dict[str, str]()
    try:
        with time_limit(SECONDS):
            for how, found in verdicts(module, values, seed):
                counts["runs"] += 1
                counts.update({kind: found.counts.get(kind, 0) for kind in KINDS})
                if found.counts.get(OUTSIDE) or found.wrong:
                    wrong.setdefault(OUTSIDE, _described(how, found))
    except TooLongError:
        counts["took too long"] += 1
    except Error as error:
        counts[f"refused: {type(error).__name__}"] += 1
    except Exception as error:  # to find any other exception is a purpose
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.name}"
        detail = f"line {last.lineno}: {type(error).__name__}: {error}"
        wrong[f"defect: {type(error).__name__} in {place}"] = detail
    return Examined(counts, wrong)


def _described(how: str, found: Found) -> str:
    steps = (f"%{step.instruction.name}: {step.verdict.counts}" for step in found.wrong)
    outputs = (str(output.verdict.counts) for output in found.outputs)
    return "\n".join([how, *steps, *outputs])


@dataclass(frozen=True, slots=True)
class Soundness:
    """The plan of the campaign: ``size`` programs in a chunk."""

    seed: int
    size: int = 50

    @property
    def facts(self) -> Mapping[str, Any]:
        """All fields, which decide the outcome."""
        return {"campaign": "soundness", "seed": self.seed, "size": self.size}

    @property
    def memory(self) -> int | None:
        """No limit: drawn programs are small."""
        return None

    def examiner(self, done: Done) -> AbstractContextManager[SoundnessExaminer]:
        """Open an examiner, which needs no other chunks."""
        return nullcontext(SoundnessExaminer(self))


@dataclass(frozen=True, slots=True)
class SoundnessExaminer:
    """Judges the results of legal compilers."""

    subject: Soundness

    def chunk(self, number: int, examples: Sequence[int] | None = None) -> Iterator[Part]:
        """Count programs, runs, and elements by verdict."""
        drawn = self._drawn(number)
        for example in range(len(drawn)) if examples is None else examples:
            case, found = drawn[example], Chunk()
            one = examined(case.module, case.arrays, self._seed(number, example))
            found.count("counts", {"programs": 1})
            found.count("counts", one.counts)
            found.suspects.extend(
                Suspect("soundness", kind, detail, example, True, case)
                for kind, detail in one.wrong.items()
            )
            yield Part({example}, found)

    def unreduced(self, suspect: Suspect) -> Finding:
        """Make a finding of the program as it is."""
        return program_finding(suspect.kind, suspect.detail, suspect.evidence, suspect.evidence)

    def reduced(self, suspect: Suspect, number: int, seconds: float) -> Finding:
        """Reduce a program to a small one with the same fault."""
        case, seed = suspect.evidence, self._seed(number, suspect.example)

        def is_wrong(module: Module, values: tuple[Value, ...]) -> bool:
            return suspect.kind in examined(module, values, seed).wrong

        if not is_wrong(case.module, case.arrays):  # it took too long this time
            return program_finding(suspect.kind, suspect.detail, case, case)
        small = Case(*fuzz.reduce(case.module, case.arrays, is_wrong, seconds=seconds))
        detail = examined(small.module, small.arrays, seed).wrong.get(suspect.kind)
        return program_finding(suspect.kind, detail or suspect.detail, small, case)

    def write(self, number: int, example: int, folder: Path) -> None:
        """Write the program as it is drawn."""
        write_program(folder, "original", self._drawn(number)[example])

    def _drawn(self, number: int) -> list[Case]:
        return drawn(self.subject.seed, number, self.subject.size)

    def _seed(self, number: int, example: int) -> int:
        """Return the seed of a program's legal compilers."""
        return example + number * self.subject.size


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m selftest.soundness", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="programs in all, at least")
    parser.add_argument("--chunk", type=int, default=50, help="programs in a chunk: n is of it")
    campaign_progress.add_options(parser, workers=0)
    given = parser.parse_args(words)
    subject = Soundness(given.seed, given.chunk)
    return campaign_progress.run(subject, given.count, given, "programs", _line)


def _line(total: Chunk) -> str:
    return ", ".join(f"{n:,} {name}" for name, n in total.counts.items() if name != "chunks")


if __name__ == "__main__":
    sys.exit(main())
