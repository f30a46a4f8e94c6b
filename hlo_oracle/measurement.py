"""Check one file in a process of its own, for ``hlo check``.

So a crash becomes a row of the table, and the peak of memory is that of one file
(:mod:`hlo_oracle.own_process`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import backend_c
import hlo
import interp
from hlo import archive
from hlo.errors import ArgumentError, Error, explained
from hlo.io_errors import told
from hlo.operating_system import keep_freed_memory, peak_memory
from hlo.values import Value
from hlo_oracle import (
    arguments,
    named_arrays,
    own_process,
    peer_verdicts,
    rank_runs,
    recorded_sums,
)
from hlo_oracle.loading import programs
from hlo_oracle.loading.programs import Program
from hlo_oracle.recorded_results import budget_named, notes, recorded
from interp.envelope.budget import XLA_CPU
from interp.envelope.verdict import KINDS, OUTSIDE, UNDETERMINED

T = TypeVar("T")

_Run = Callable[[tuple[tuple[Value, ...], ...], int], tuple[Value, ...]]


_TRIVIAL = """HloModule trivial
ENTRY main { p = f32[] parameter(0)
  ROOT n = f32[] negate(p) }
"""


@dataclass(frozen=True, slots=True)
class Job:
    """One file to check, with its options. ``save`` is the file for the interpreter's outputs, if
    any. ``seed`` None means 0, and the arguments recorded with the program if there are some.
    ``with_sums``: judge the recipe's recorded sums of XLA:CPU's outputs."""

    file: str
    recipe: str | None
    seed: int | None
    args: str | None
    with_c: bool
    threads: int | None
    save: str | None = None
    replicas: int | None = None  # None: the header's
    partitions: int | None = None
    against: str | None = None  # a compiler to judge
    with_sums: bool = True
    elided: str | None = None  # how to fill in constants that the text leaves out
    results: str | None = None  # a file of recorded results to judge
    budget: str | None = None  # what the compiler may do to an instruction; None: its own
    cast: bool = False  # arrays of other widths
    fuel: int | None = None  # of the interpreter

    @property
    def rng_seed(self) -> int:
        """The seed of the program's own random bits."""
        return self.seed or 0


@dataclass(frozen=True, slots=True)
class Row:
    """The outcome of a check. Times are in seconds, memory in bytes; None if not done. ``error``:
    bad input; ``crash``: a failure of this project. ``different`` has a line per output that
    differs from the expected one, ``outside`` one per output in which another compiler is proven
    wrong. ``sum_verdicts`` counts the outputs with recorded sums by verdict; ``sums`` has a line
    per output whose sums are outside, ``undetermined_sums`` one per output without a verdict, with
    the reason."""

    file: str
    instructions: int | None = None
    parse: float | None = None
    interp: float | None = None
    compile: float | None = None
    run: float | None = None
    memory: int | None = None
    outputs: tuple[str, ...] = ()  # NumPy type and dims of each
    different: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()
    sum_verdicts: dict[str, int] | None = None
    sum_seconds: float | None = None  # of judging the recorded sums
    undetermined_sums: tuple[str, ...] = ()
    peer: float | None = None  # the other compiler's run
    verdicts: dict[str, int] | None = None  # of its elements
    outside: tuple[str, ...] = ()
    undetermined: tuple[str, ...] = ()
    unlikely: tuple[str, ...] = ()  # undetermined elements beyond random rounding, by output
    refused: str | None = None  # why it has no results
    notes: tuple[str, ...] = ()  # what is not as in the file
    peer_crash: str | None = None  # how it ended instead
    error: str | None = None
    crash: str | None = None

    @property
    def status(self) -> int:
        """The exit status: 0 as expected, 1 results differ, 2 bad input."""
        if self.different or self.sums or self.crash or self.outside or self.peer_crash:
            return 1
        return 2 if self.error else 0


def measured(job: Job) -> Row:
    """Check one file in a process of its own."""
    answer = own_process.asked("hlo_oracle.measurement", asdict(job))
    if isinstance(answer, own_process.Died):
        return Row(job.file, crash=answer.how)
    return Row(**answer)


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def _checked(job: Job) -> Row:
    """Return the row of all stages, or of those before the one that failed."""
    row = Row(job.file)
    try:
        for stage in _stages(job):
            row = stage
    except OSError as error:
        return replace(row, error=told(error))
    except Error as error:
        return replace(row, error=explained(error))
    return row


def _stages(job: Job) -> Iterator[Row]:
    """Parse, verify and print; interpret; compile and run: yield the row after each stage."""
    path = Path(job.file)
    program, seconds = _timed(
        lambda: programs.read_program(path, job.elided, given=programs.sizes_of(job))
    )
    _require_arguments(program, job)
    module, count = program.module, program.module.instruction_count
    row = Row(job.file, instructions=count, parse=seconds, notes=program.notes)
    if hlo.parse(hlo.format(module)) != module:
        row = replace(row, different=("the printed text parses to another module",))
    yield row

    ranks = rank_runs.ranks_of(module, job)
    values = programs.per_rank(program, path, job, ranks.size)
    expected, seconds = _timed(
        lambda: rank_runs.interpreted(module, ranks, values, job.rng_seed, job.fuel)
    )
    found = dict(rank_runs.outputs_of(expected))
    shapes = tuple(f"{array.dtype}{list(array.shape)}" for array in found.values())
    row = replace(row, interp=seconds, outputs=shapes)
    recipe = arguments.find_recipe(path, job.recipe) if job.with_sums else None
    if recipe is not None and recipe.outputs and ranks.size == 1:
        yield row
        enclosed = recorded_sums.sums_enclosed(module, values[0], XLA_CPU, job.rng_seed)
        verdicts, seconds = _timed(
            lambda: recorded_sums.judged_sums(found.items(), recipe.outputs, enclosed)
        )
        row = replace(_with_sums(row, verdicts), sum_seconds=seconds)
    yield row

    if job.with_c and rank_runs.is_for_c(module, ranks):
        executable, seconds = _timed(
            lambda: backend_c.compile(module, numerics="exact", threads=job.threads)
        )
        row = replace(row, compile=seconds)
        run: _Run = partial(rank_runs.compiled, executable)
        actual, seconds = _timed(lambda: run(values, job.rng_seed))
        different = (*row.different, *map(str, rank_runs.differences_of(expected, actual)))
        row = replace(row, run=seconds, different=different)
    # Recorded results are those of the recorded arguments.
    own = program.results if values[0] is program.arguments else None
    if job.against is not None or job.results is not None or own is not None:
        row = _judged(row, job, program, values[0], expected)
    if job.save is not None:
        archive.write(Path(job.save), found.items())
    yield row


def _require_arguments(program: Program, job: Job) -> None:
    """Raise ArgumentError unless recorded results come with their arguments, and a budget with
    results."""
    known = program.arguments is not None or arguments.are_asked_for(job)
    if job.results is not None and program.module.entry.parameters and not known:
        raise ArgumentError(f"{job.results}: results of which arguments? --args FILE.npz has them")
    if job.budget is not None and (job.against, job.results, program.results) == (None,) * 3:
        raise ArgumentError("--budget is for results to judge: --against or --results gives them")


def _judged(
    row: Row, job: Job, program: Program, values: tuple[Value, ...], expected: tuple[Value, ...]
) -> Row:
    """Judge another compiler's results: those of a run, or the recorded ones."""
    peer_verdicts.require_one_rank(len(expected))
    module, text, exact, seed = program.module, program.text, expected[0], job.rng_seed
    if job.against is not None:
        budget = budget_named(job.budget, peer_verdicts.peer(job.against).budget)
        found = peer_verdicts.judge(
            job.against, module, text, values, exact=exact, seed=seed, budget=budget
        )
    else:
        given = (
            program.results
            if job.results is None
            else named_arrays.results(Path(job.results), archive.read(Path(job.results)))
        )
        budget = budget_named(job.budget)
        run = recorded(program, given or ())
        found = peer_verdicts.peer_judgement(
            run, budget, module, text, values, exact=exact, seed=seed
        )
    return replace(
        row,
        notes=(*row.notes, *notes(budget), *filter(None, [found.instead])),
        peer=None if found.counts is None else found.run,
        verdicts=found.counts,
        outside=found.outside,
        undetermined=found.undetermined,
        unlikely=found.unlikely,
        refused=found.refused,
        peer_crash=found.crash,
    )


def _with_sums(row: Row, verdicts: Sequence[recorded_sums.SumVerdict]) -> Row:
    kinds = [verdict.kind for verdict in verdicts]
    return replace(
        row,
        sum_verdicts={kind: kinds.count(kind) for kind in KINDS},
        sums=tuple(verdict.line for verdict in verdicts if verdict.kind == OUTSIDE),
        undetermined_sums=tuple(v.line for v in verdicts if v.kind == UNDETERMINED),
    )


def prepare() -> None:
    """Import the modules that checking needs, so that their import is not part of a file's time."""
    module = hlo.parse(_TRIVIAL)
    hlo.verify(module)
    interp.evaluate(module, *arguments.from_seed(module, 0))
    backend_c.emit(module)


def answer(question: dict[str, Any]) -> dict[str, object]:
    """Check the file of a question: fields of a job to fields of a row."""
    keep_freed_memory()
    prepare()
    return asdict(replace(_checked(Job(**question)), memory=peak_memory()))
