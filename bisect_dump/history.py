"""The stages of one module, one after the other, or the first that changed its meaning."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from bisect_dump.difference_verdict import Judgement
from bisect_dump.dump import Dumped, Stage
from bisect_dump.stage_results import Arguments, Meanings
from bisect_dump.stages import Read, interface, read_stage, same_interface
from hlo.errors import Error
from interp.envelope.verdict import OUTSIDE, UNDETERMINED

# What may become of a stage, besides the four verdicts.
FIRST, SAME, OTHER, FAULT = "first", "same program", "other arguments", "not checked"
CHANGED = OUTSIDE
SUSPECT = "nothing is proven, but step by step the results do not follow from those before"

Watch = Callable[[Stage], None]  # is told each stage before it is read


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one stage. ``maker`` is the pass that made it. ``kind`` is a verdict, or one
    of those above; ``lines`` are the reasons."""

    stage: Stage
    kind: str
    instructions: int | None = None
    seconds: float | None = None
    counts: dict[str, int] | None = None
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """Two neighbours of which the later one means something else."""

    before: Read
    after: Read
    judgement: Judgement
    meanings: Meanings


class History:
    """Of one module of a dump; ``arguments`` draws those of a program in a file, for so many
    ranks. Errors of stages are kept in ``faults``."""

    def __init__(self, dumped: Dumped, arguments: Arguments, seed: int) -> None:
        self._dumped, self._arguments, self._seed = dumped, arguments, seed
        self._meanings: Meanings | None = None
        self.faults: dict[Stage, str] = {}  # stages that could not be checked, and why
        self.breaks: dict[Stage, tuple[str, str]] = {}  # stages that take other arrays, from, to
        self.suspect: Change | None = None  # the first that nothing is proven of
        self.undetermined = 0  # neighbours, as far as they were compared one by one

    def rows(self, watch: Watch) -> Iterator[Row]:
        """Each stage beside the last one before it that could be evaluated."""
        return (row for row, _ in self._steps(watch))

    def first_change(self, watch: Watch) -> Change | None:
        """The first pass that changed the meaning, and what was found until then."""
        changes = (step for row, step in self._steps(watch) if row.kind == CHANGED)
        return next(changes, None)

    def _steps(self, watch: Watch) -> Iterator[tuple[Row, Change | None]]:
        """The rows, and the two stages of each that were compared."""
        before: Read | None = None
        for stage in self._dumped.stages:
            watch(stage)
            start = time.perf_counter()
            try:
                after = read_stage(stage)
                row, change = self._compared(before, after)
            except (Error, OSError) as error:
                self.faults[stage] = str(error)
                yield Row(stage, FAULT, lines=(str(error),)), None
                continue
            before = after
            yield replace(row, seconds=time.perf_counter() - start), change

    def _compared(self, before: Read | None, after: Read) -> tuple[Row, Change | None]:
        row = Row(after.stage, FIRST, after.module.instruction_count)
        if before is None or self._meanings is None or not same_interface(before, after):
            self._begin(after)
            if before is None:
                return row, None
            lines = f"from {interface(before)}", f"to {interface(after)}"
            self.breaks[after.stage] = lines
            return replace(row, kind=OTHER, lines=lines), None
        if before.digest == after.digest:
            return replace(row, kind=SAME), None
        found = self._meanings.judged(before, after)
        change = Change(before, after, found, self._meanings)
        self.undetermined += found.kind == UNDETERMINED
        if found.is_suspect and self.suspect is None:
            self.suspect = change
        lines = (*found.lines, *((SUSPECT,) if found.is_suspect else ()))
        return replace(row, kind=found.kind, counts=found.counts, lines=lines), change

    def _begin(self, first: Read) -> None:
        """Arguments for this stage and those that take the same."""
        meanings = Meanings(first, self._arguments, self._seed)
        meanings.evaluate(first)
        self._meanings = meanings
