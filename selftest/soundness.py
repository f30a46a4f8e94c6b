"""No legal result is called wrong: drawn programs, run as legal compilers would, and judged.

``python -m selftest.soundness --count N --seed S --workers W --minutes M --state FILE`` draws
programs and arguments, runs each as several legal compilers
(:mod:`selftest.legal_compilers.compiler`) and judges what they give as ``hlo check --against``
does. Program number n of a seed is always the same; with a state file a run goes on where the last
one ended. Exit status 1 if anything is outside.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import hlo
from fuzz.draw.choices import Choices, examples
from fuzz.draw.programs import program
from fuzz.draw.time_limit import TooLongError, time_limit
from fuzz.draw.values import arguments
from hlo.errors import Error
from hlo.module import Module
from hlo.types import BF16, C64, F16, F32, F64
from hlo.values import arrays_of
from interp.envelope.budget import EXACT, UNKNOWN, XLA_CPU, Budget
from interp.envelope.judgement import Found, Judge
from interp.envelope.verdict import KINDS, OUTSIDE
from interp.evaluator import evaluate
from interp.values import Value
from selftest.injection.cases import PROGRAMS, plain
from selftest.legal_compilers.compiler import Perturbed
from selftest.legal_compilers.errors import MODES

FUEL = 100_000
SECONDS = 30  # for one program
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


@dataclass
class Findings:
    """What became of the programs so far; ``wrong`` are reports of what is outside."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    chunks: int = 0

    def add(self, other: Findings) -> None:
        self.counts += other.counts
        self.wrong += other.wrong
        self.chunks += other.chunks


def drawn(seed: int, chunk: int, count: int) -> list[tuple[Module, tuple[Value, ...]]]:
    """The programs of a chunk with arguments."""

    def one(choices: Choices) -> tuple[Module, tuple[Value, ...]]:
        length = choices.integer(1, 25)
        module = program(choices, max_instructions=length, **_KINDS[chunk % len(_KINDS)])
        return module, arguments(choices, module)

    found = examples(one, count, f"{seed} {chunk}")
    return found[: count - 1] + [model(seed, chunk)] if chunk % 2 else found[:count]


def model(seed: int, chunk: int) -> tuple[Module, tuple[Value, ...]]:
    """A small model with arguments as models have them."""
    paths = sorted(PROGRAMS.glob("*.hlo"))
    module = hlo.parse(paths[chunk // 2 % len(paths)].read_text())
    rng = np.random.default_rng([seed, chunk])
    return module, tuple(plain(parameter.shape, rng) for parameter in module.entry.parameters)


def judged(
    module: Module, values: Sequence[Value], seed: int, budget: Budget | None = None
) -> Iterator[tuple[str, Found]]:
    """The verdict of several legal compilers' results, each with what it was; by ``seed`` of a
    budget, too, if none is given."""
    exact = arrays_of(evaluate(module, *values, fuel=FUEL))
    budget = budget or _BUDGETS[seed % len(_BUDGETS)]
    judge = Judge(module, values, [("", array) for array in exact], peer=budget)
    for run in range(_RUNS):
        mode = MODES[(seed + run * 2) % len(MODES)]
        peer = Perturbed(budget, seed + run, mode)
        actual = _results(peer, tuple(values), module)
        found = judge.judged(actual, partial(_results, peer, tuple(values)))
        yield f"{budget.name}, {mode}", found


def _results(
    peer: Perturbed, values: tuple[Value, ...], module: Module
) -> list[np.ndarray[Any, Any]]:
    return list(arrays_of(peer(module, *values, fuel=FUEL)))


def _report(module: Module, values: Sequence[Value], how: str, found: Found) -> str:
    lines = [f"// {how}"]
    for step in found.wrong:
        lines.append(f"// %{step.instruction.name}: {step.verdict.counts}")
    lines += [f"// {output.verdict.counts}" for output in found.outputs]
    for number, array in enumerate(arrays_of(tuple(values))):
        lines.append(f"// argument {number}: {array.dtype} {array.tobytes().hex()[:2000]}")
    return "\n".join([*lines, hlo.format(module)])


def examined(seed: int, chunk: int, count: int) -> Findings:
    """What becomes of the programs of one chunk."""
    findings = Findings(chunks=1)
    for number, (module, values) in enumerate(drawn(seed, chunk, count)):
        findings.counts["programs"] += 1
        try:
            with time_limit(SECONDS):
                wrong = _counted(findings.counts, module, values, number + chunk * count)
            findings.wrong += [f"// {seed} {chunk} {number}\n{report}" for report in wrong]
        except TooLongError:
            findings.counts["took too long"] += 1
        except Error as error:
            findings.counts[f"refused: {type(error).__name__}"] += 1
        except Exception as error:  # to find any other exception is a purpose
            where = traceback.format_exception(error)[-2:]
            defect = _report(module, values, "".join(where).replace("\n", " "), Found(()))
            findings.wrong.append(f"// {seed} {chunk} {number}\n{defect}")
    return findings


def _counted(counts: Counter[str], module: Module, values: Sequence[Value], seed: int) -> list[str]:
    """Reports of what is outside."""
    wrong = []
    for how, found in judged(module, values, seed):
        counts["runs"] += 1
        for kind in KINDS:
            counts[kind] += found.counts.get(kind, 0)
        if found.counts.get(OUTSIDE) or found.wrong:
            wrong.append(_report(module, values, how, found))
    return wrong


_Job = tuple[int, int, int]  # the arguments of examined


def _work(job: _Job) -> Findings:
    return examined(*job)


def campaign(jobs: Sequence[_Job], workers: int) -> Iterator[Findings]:
    """The findings of each job, in order; without workers, this process does them."""
    if not workers:
        yield from map(_work, jobs)
        return
    with multiprocessing.get_context("forkserver").Pool(workers) as pool:
        yield from pool.imap(_work, jobs)


def _restored(path: Path | None, seed: int) -> Findings:
    if path is None or not path.exists():
        return Findings()
    kept = json.loads(path.read_text())
    if kept["seed"] != seed:
        raise Error(f"{path} is of seed {kept['seed']}, not {seed}")
    return Findings(Counter(kept["counts"]), kept["wrong"], kept["chunks"])


def _described(findings: Findings, rate: float) -> str:
    counts = ", ".join(f"{count:,} {name}" for name, count in findings.counts.items())
    return f"{counts}; {len(findings.wrong)} findings; {rate:.1f} programs/s"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m selftest.soundness", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="programs in all")
    parser.add_argument("--chunk", type=int, default=50, help="programs drawn at once: n is of it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--workers", type=int, default=0, help="processes; 0: this one")
    parser.add_argument("--state", type=Path, help="a file with what is done, to go on with")
    given = parser.parse_args(words)
    findings = _restored(given.state, given.seed)
    start, before = time.monotonic(), findings.counts["programs"]
    chunks = range(findings.chunks, -(-given.count // given.chunk))
    jobs = [(given.seed, number, given.chunk) for number in chunks]
    for found in campaign(jobs, given.workers):
        findings.add(found)
        for report in found.wrong:
            print(report, flush=True)
        if given.state is not None:
            kept = {"seed": given.seed, "counts": findings.counts, "wrong": findings.wrong}
            given.state.write_text(json.dumps({**kept, "chunks": findings.chunks}))
        elapsed = time.monotonic() - start
        rate = (findings.counts["programs"] - before) / elapsed
        print(f"\r{_described(findings, rate)}", end="", file=sys.stderr, flush=True)
        if elapsed > 60 * given.minutes:
            break
    print(file=sys.stderr)
    return 1 if findings.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
