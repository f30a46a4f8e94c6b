"""Check one file in a process of its own, for ``hlo check``.

``python -m hlo_oracle.measurement`` takes a job as JSON on standard input and answers with a row as
JSON on standard output. So a crash is a row, and the peak of memory is that of one file.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import backend_c
import hlo
from hlo import archive
from hlo.errors import Error
from hlo.module import Module
from hlo.program_file import read
from hlo.values import Value
from hlo_oracle import arguments, own_process, rank_runs, recorded_sums
from hlo_oracle import peer_verdicts as against
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
    """One file to check. ``save`` is where the interpreter's outputs go, if somewhere.
    ``with_sums``: judge the sums that the recipe has of the outputs of XLA on a CPU."""

    file: str
    recipe: str | None
    seed: int
    args: str | None
    with_c: bool
    threads: int | None
    save: str | None = None
    replicas: int | None = None  # None: the header's
    partitions: int | None = None
    against: str | None = None  # a compiler to judge
    with_sums: bool = True


@dataclass(frozen=True, slots=True)
class Row:
    """Times in seconds, memory in bytes; None: not done. ``error``: the input is bad, or
    ``crash``: we are. ``different`` has a line per output that is not as expected, ``outside`` one
    per output in which another compiler is proven wrong. ``sum_verdicts`` counts the outputs with
    recorded sums by verdict; ``sums`` has a line per output whose sums are outside, and
    ``undetermined_sums`` one for which nothing can be said, and why."""

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
    peer_crash: str | None = None  # how it ended instead
    error: str | None = None
    crash: str | None = None

    @property
    def status(self) -> int:
        """0 as it should be, 1 results differ, 2 bad input."""
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
    """The row of all stages, or of those before the one that failed."""
    row = Row(job.file)
    try:
        for stage in _stages(job):
            row = stage
    except (Error, OSError) as error:
        return replace(row, error=str(error))
    return row


def _stages(job: Job) -> Iterator[Row]:
    """Parse, verify and print; interpret; compile and run: the row after each of them."""
    path = Path(job.file)
    module, seconds = _timed(lambda: read(path))
    row = Row(job.file, instructions=module.instruction_count, parse=seconds)
    if hlo.parse(hlo.format(module)) != module:
        row = replace(row, different=("the printed text parses to another module",))
    yield row

    ranks = rank_runs.ranks_of(module, job)
    values = arguments.per_rank(module, path, job, ranks.size)
    run: _Run = partial(rank_runs.interpreted, module, ranks)
    expected, seconds = _timed(lambda: run(values, job.seed))
    found = dict(rank_runs.outputs_of(expected))
    shapes = tuple(f"{array.dtype}{list(array.shape)}" for array in found.values())
    row = replace(row, interp=seconds, outputs=shapes)
    recipe = arguments.find_recipe(path, job.recipe) if job.with_sums else None
    if recipe is not None and recipe.outputs and ranks.size == 1:
        yield row
        enclosed = recorded_sums.sums_enclosed(module, values[0], XLA_CPU, job.seed)
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
        run = partial(rank_runs.compiled, executable)
        actual, seconds = _timed(lambda: run(values, job.seed))
        different = (*row.different, *map(str, rank_runs.differences_of(expected, actual)))
        row = replace(row, run=seconds, different=different)
    if job.against is not None:
        row = _against(row, job, module, values[0], expected)
    if job.save is not None:
        archive.write(Path(job.save), found.items())
    yield row


def _against(
    row: Row, job: Job, module: Module, values: tuple[Value, ...], expected: tuple[Value, ...]
) -> Row:
    assert job.against is not None
    against.require_one_rank(len(expected))
    text = Path(job.file).read_bytes().decode("utf-8", errors="replace")
    found = against.judge(job.against, module, text, values, expected[0], job.seed)
    return replace(
        row,
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


def main() -> None:
    job = Job(**json.load(sys.stdin))
    hlo.verify(hlo.parse(_TRIVIAL))  # the first use imports the ops, which is no file's time
    row = _checked(job)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    json.dump(asdict(replace(row, memory=peak)), sys.stdout)


if __name__ == "__main__":
    main()
