"""The stages of one module, one after the other, or the first that changed its meaning."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from bisecting.dump import Dumped, Stage
from bisecting.meanings import Arguments, Judgement, Meanings
from bisecting.stages import Read, interface, read_stage, same_interface
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
    """Of one module of a dump; ``arguments`` draws those of a program."""

    def __init__(self, dumped: Dumped, arguments: Arguments, seed: int) -> None:
        self._dumped, self._arguments, self._seed = dumped, arguments, seed
        self._meanings: Meanings | None = None
        self.faults: dict[Stage, str] = {}  # stages that could not be checked, and why
        self.breaks: dict[Stage, tuple[str, str]] = {}  # stages that take other arrays, from, to
        self.suspect: Change | None = None  # the first that nothing is proven of
        self.undetermined = 0  # neighbours, as far as they were compared one by one

    def rows(self, watch: Watch) -> Iterator[Row]:
        """Each stage beside the last one before it that could be evaluated."""
        before: Read | None = None
        for stage in self._dumped.stages:
            watch(stage)
            start = time.perf_counter()
            try:
                after = read_stage(stage)
                row = self._row(before, after)
            except (Error, OSError) as error:
                self.faults[stage] = str(error)
                yield Row(stage, FAULT, lines=(str(error),))
                continue
            before = after
            yield replace(row, seconds=time.perf_counter() - start)

    def _row(self, before: Read | None, after: Read) -> Row:
        row = Row(after.stage, FIRST, after.module.instruction_count)
        if before is None or self._meanings is None or not same_interface(before, after):
            self._begin(after)
            if before is None:
                return row
            return replace(row, kind=OTHER, lines=self._broken(before, after))
        if before.digest == after.digest:
            return replace(row, kind=SAME)
        found = self._meanings.judged(before, after)
        lines = (*found.lines, *((SUSPECT,) if found.is_suspect else ()))
        return replace(row, kind=found.kind, counts=found.counts, lines=lines)

    def _broken(self, before: Read, after: Read) -> tuple[str, str]:
        lines = f"from {interface(before)}", f"to {interface(after)}"
        self.breaks[after.stage] = lines
        return lines

    def _begin(self, first: Read) -> Meanings:
        """Arguments for this stage and those that take the same."""
        meanings = Meanings(first, self._arguments, self._seed)
        meanings.exact(first)
        self._meanings = meanings
        return meanings

    def first_change(self, watch: Watch) -> Change | None:
        """The first pass that changed the meaning, with as few evaluations as it takes: where the
        last stage is changed beside the first, by halves."""
        for group in self._groups(watch):
            change = self._change_in(group, watch)
            if change is not None:
                return change
        return None

    def _groups(self, watch: Watch) -> list[list[Stage]]:
        """Distinct stages that can be read, in runs that take the same arguments."""
        groups: list[list[Stage]] = []
        before: Read | None = None
        for stage in self._dumped.stages:
            watch(stage)
            try:
                after = read_stage(stage)
            except (Error, OSError) as error:
                self.faults[stage] = str(error)
                continue
            if before is None or not same_interface(before, after):
                groups.append([stage])
                if before is not None:
                    self._broken(before, after)
            elif before.digest != after.digest:
                groups[-1].append(stage)
            before = after
        return groups

    def _change_in(self, group: Sequence[Stage], watch: Watch) -> Change | None:
        try:
            return self._by_halves(group, watch)
        except (Error, OSError):  # of a stage in the middle: the others may tell
            return self._in_turn(group, watch)

    def _by_halves(self, group: Sequence[Stage], watch: Watch) -> Change | None:
        meanings = self._begin(read_stage(group[0]))

        def is_changed(number: int) -> bool:
            watch(group[number])
            found = meanings.judged(meanings.first, read_stage(group[number]))
            return found.kind == CHANGED

        good, bad = 0, len(group) - 1
        if not bad or not is_changed(bad):
            return self._in_turn(group, watch)
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (good, middle) if is_changed(middle) else (middle, bad)
        pair = read_stage(group[good]), read_stage(group[bad])
        found = meanings.judged(*pair)
        if found.kind == CHANGED:
            return Change(*pair, found, meanings)
        return self._in_turn(group, watch)

    def _in_turn(self, group: Sequence[Stage], watch: Watch) -> Change | None:
        before: Read | None = None
        meanings: Meanings | None = None
        for stage in group:
            watch(stage)
            try:
                after = read_stage(stage)
                if before is None or meanings is None:
                    meanings = self._begin(after)
                else:
                    found = meanings.judged(before, after)
                    self.undetermined += found.kind == UNDETERMINED
                    if found.kind == CHANGED:
                        return Change(before, after, found, meanings)
                    if found.is_suspect and self.suspect is None:
                        self.suspect = Change(before, after, found, meanings)
            except (Error, OSError) as error:
                self.faults[stage] = str(error)
                continue
            before = after
        return None
