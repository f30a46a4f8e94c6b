"""Judge whether files are one program before and after optimisation: ``hlo check --same``.

Optimisation may change roundings. Outputs that differ in a bit are judged as two stages of a
compilation are (:mod:`bisect_dump`): within, if the later program's exact results follow from the
earlier one by legal steps or lie in its error envelope; outside, proven different, only where no
number is legal for both programs.

Two jobs are judged in a process of its own (:mod:`hlo_oracle.own_process`).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import bisect_dump
from bisect_dump.history import SUSPECT
from bisect_dump.stages import Read, interface
from hlo import archive
from hlo.bit_equality import differences
from hlo.errors import Error
from hlo.module import Module
from hlo.values import Value
from hlo_oracle import arguments, own_process, rank_runs
from hlo_oracle.loading import programs
from hlo_oracle.measurement import Job, Row
from hlo_oracle.peer_verdicts import described
from hlo_oracle.plurals import counted
from hlo_oracle.program_paths import program_name
from interp.envelope.verdict import EQUAL, KINDS, OUTSIDE, UNDETERMINED


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of two files. ``kind``: the worst verdict of an element; ``elements``: their
    number by verdict. ``lines`` are the evidence of a proven difference, ``reasons`` why something
    is undetermined. ``seconds``: of judging outputs that differ. ``crash``: how the judge died."""

    one: str
    other: str
    kind: str
    elements: dict[str, int]
    outputs: int
    equal: int  # outputs
    lines: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    seconds: float | None = None
    crash: str | None = None

    @property
    def status(self) -> int:
        """The exit status: 1 if a difference is proven, else 0."""
        return 1 if self.kind == OUTSIDE or self.crash else 0

    def __str__(self) -> str:
        """Format the verdict as a line, and the evidence below it."""
        counts = described([(kind, self.elements.get(kind, 0)) for kind in KINDS])
        said = f"crashed: {self.crash}" if self.crash else f"elements {counts}"
        said = f"DIFFERENT: {said}" if self.kind == OUTSIDE else said
        time_ = "" if self.seconds is None else f" ({self.seconds:.1f} s)"
        names = f"{Path(self.one).name} and {Path(self.other).name}"
        below = (f"    {line}" for line in (*self.lines, *self.reasons))
        return "\n".join((f"{names}: {said}{time_}", *below))


def names(files: Sequence[str]) -> list[str]:
    """Name the program of each file: two files are one program, more are by their names up to the
    first dot. Raises Error if no two are."""
    if len(files) == 2:
        return [program_name(Path(files[0]))] * 2
    found = [program_name(Path(file)) for file in files]
    if len(set(found)) == len(found):
        raise Error(
            f"--same: there is nothing to compare among {len(files)} files: give two, or some of"
            " one name up to the first dot, as model.before.hlo and model.after.hlo"
            if len(files) > 1
            else f"--same: there is nothing to compare {files[0]} with: give a second file"
        )
    return found


def compared(jobs: list[Job], rows: list[Row]) -> Iterator[Comparison]:
    """Compare each further file of a program with the first one; files that did not run are left
    out."""
    files: dict[str, list[_Outputs]] = defaultdict(list)
    for name, job, row in zip(names([job.file for job in jobs]), jobs, rows, strict=True):
        if job.save is not None and Path(job.save).exists():
            files[name].append(_Outputs(job, row, Path(job.save)))
    for first, *others in files.values():
        for other in others:
            yield _comparison(first, other)


@dataclass(frozen=True, slots=True)
class _Outputs:
    job: Job
    row: Row
    saved: Path

    def arrays(self) -> tuple[np.ndarray, ...]:
        # Types that NumPy lacks (bf16) are saved as raw bytes; the row has their names.
        types = [np.dtype(text.partition("[")[0]) for text in self.row.outputs]
        saved = archive.read(self.saved)
        return tuple(a.view(t) for a, t in zip(saved.values(), types, strict=True))


def _comparison(first: _Outputs, other: _Outputs) -> Comparison:
    """Compare the saved outputs bit by bit, and judge those that differ."""
    files = first.job.file, other.job.file
    count = len(first.row.outputs)
    if first.row.outputs != other.row.outputs:
        gives = [f"gives {', '.join(x.row.outputs) or 'nothing'}" for x in (first, other)]
        lines = (f"{Path(files[0]).name} {gives[0]}", f"{Path(files[1]).name} {gives[1]}")
        return Comparison(*files, OUTSIDE, {OUTSIDE: 1}, count, 0, lines)
    pair = first.arrays(), other.arrays()
    sizes = [array.size for array in pair[0]]
    different = {difference.output: difference for difference in differences(*pair)}
    if not different:
        return Comparison(*files, EQUAL, {EQUAL: sum(sizes)}, count, count)
    changed = sum(difference.different for difference in different.values())
    by_bits = {EQUAL: sum(sizes) - changed, UNDETERMINED: changed}
    bits = Comparison(*files, UNDETERMINED, by_bits, count, count - len(different))
    del pair
    return _judged_apart(bits, first.job, other.job)


def _judged_apart(bits: Comparison, one: Job, other: Job) -> Comparison:
    """Judge two files in a process of its own."""
    question = {"one": asdict(one), "other": asdict(other)}
    answer = own_process.asked("hlo_oracle.same_program", question)
    if isinstance(answer, own_process.Died):
        return replace(bits, crash=answer.how)
    return replace(bits, **answer)


def _judged(one: Job, other: Job) -> dict[str, object]:
    """Judge two programs; return the verdict's fields of a :class:`Comparison`."""
    before, after = (_stage(job) for job in (one, other))
    ranks = [rank_runs.ranks_of(stage.module, one).size for stage in (before, after)]
    if ranks != [1, 1]:
        return {"reasons": ("envelopes are of one rank",)}
    if not bisect_dump.same_interface(before, after):
        takes = (f"{s.stage.label} is {interface(s)}" for s in (before, after))
        return {"reasons": ("they take other arrays", *takes)}
    start = time.perf_counter()
    try:
        meanings = bisect_dump.Meanings(before, partial(_arguments, one), one.rng_seed)
        found = meanings.judgement(before, after)
    except Error as error:
        return {"reasons": (str(error),)}
    return {
        "kind": found.kind,
        "elements": found.counts,
        "lines": found.lines,
        "reasons": (*found.reasons, *((SUSPECT,) if found.is_suspect else ())),
        "seconds": time.perf_counter() - start,
    }


def _stage(job: Job) -> Read:
    path = Path(job.file)
    program = programs.read_program(path, job.elided, given=programs.sizes_of(job))
    return bisect_dump.as_stage(bisect_dump.Stage(path, path.name), program.module)


def _arguments(job: Job, module: Module, path: Path, ranks: int) -> tuple[tuple[Value, ...], ...]:
    return arguments.per_rank(module, path, job, ranks)


def summary(comparisons: list[Comparison]) -> str:
    """Count the pairs of files by their worst verdicts."""
    kinds = [comparison.kind for comparison in comparisons]
    verdicts = described([(kind, kinds.count(kind)) for kind in KINDS])
    return f"{counted(len(kinds), 'pair')} of files: {verdicts}"


def answer(question: dict[str, Any]) -> dict[str, object]:
    """Judge the two files of a question: their jobs to fields of a comparison."""
    return _judged(Job(**question["one"]), Job(**question["other"]))
