"""Judge the stages of one module in order, each against the one before."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from bisect_dump.difference_verdict import Judgement
from bisect_dump.dump import Dumped, Stage
from bisect_dump.stage_results import Arguments, Meanings
from bisect_dump.stages import Read, Reader, as_stage, interface, read_text, same_interface
from hlo.errors import Error
from hlo.io_errors import why
from interp.envelope.verdict import OUTSIDE, UNDETERMINED

# Outcomes of a stage besides the four verdicts.
FIRST, SAME, OTHER, FAULT = "first", "same program", "other arguments", "not checked"
CHANGED = OUTSIDE
SUSPECT = "nothing is proven, but step by step the results do not follow from those before"

Watch = Callable[[Stage], None]  # is told each stage before it is read


@dataclass(frozen=True, slots=True)
class Row:
    """Hold the outcome of one stage: ``kind`` is a verdict or FIRST, SAME, OTHER or FAULT;
    ``seconds`` is the time to read and judge it; ``lines`` are reasons."""

    stage: Stage
    kind: str
    instructions: int | None = None
    seconds: float | None = None
    counts: dict[str, int] | None = None
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """Hold two consecutive stages with different meanings, and the results that prove it."""

    before: Read
    after: Read
    judgement: Judgement
    meanings: Meanings


class History:
    """Judge the stages of one module of a dump. ``arguments(module, path, ranks)`` draws the
    arguments of each rank, ``read(stage)`` reads its module. Errors of stages are kept in
    ``faults``, not raised."""

    def __init__(
        self, dumped: Dumped, arguments: Arguments, seed: int, read: Reader = read_text
    ) -> None:
        self._dumped, self._arguments, self._seed = dumped, arguments, seed
        self._read = read
        self._meanings: Meanings | None = None
        self.faults: dict[Stage, str] = {}  # why a stage could not be checked
        self.breaks: dict[Stage, tuple[str, str]] = {}  # interface before and after a change of it
        self.suspect: Change | None = None  # the first undetermined change that looks wrong
        self.undetermined = 0  # how many pairs of stages stayed undetermined

    def rows(self, watch: Watch) -> Iterator[Row]:
        """Judge each stage against the last one before it that could be evaluated; ``watch`` is
        called with each stage before it is read."""
        return (row for row, _ in self._steps(watch))

    def first_change(self, watch: Watch) -> Change | None:
        """Return the first proven change, or None; ``faults``, ``breaks`` and ``suspect`` cover the
        stages up to it."""
        changes = (step for row, step in self._steps(watch) if row.kind == CHANGED)
        return next(changes, None)

    def _steps(self, watch: Watch) -> Iterator[tuple[Row, Change | None]]:
        """Yield each row with the pair of stages that it compares."""
        before: Read | None = None
        for stage in self._dumped.stages:
            watch(stage)
            start = time.perf_counter()
            try:
                after = as_stage(stage, self._read(stage))
                row, change = self._compared(before, after)
            except (Error, OSError) as error:
                self.faults[stage] = why(error)
                yield Row(stage, FAULT, lines=(why(error),)), None
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
        found = self._meanings.judgement(before, after)
        change = Change(before, after, found, self._meanings)
        self.undetermined += found.kind == UNDETERMINED
        if found.is_suspect and self.suspect is None:
            self.suspect = change
        lines = (*found.lines, *((SUSPECT,) if found.is_suspect else ()))
        return replace(row, kind=found.kind, counts=found.counts, lines=lines), change

    def _begin(self, first: Read) -> None:
        """Draw arguments for this stage and all later ones with the same interface."""
        meanings = Meanings(first, self._arguments, self._seed)
        meanings.evaluate(first)
        self._meanings = meanings
