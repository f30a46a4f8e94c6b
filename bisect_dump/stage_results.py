"""Evaluate the stages of a module exactly, and judge each against the one before.

A pass may change roundings. So two stages mean the same if the earlier one can produce the later
one's exact results by legal steps. A change is proven only where the later results are outside the
earlier stage's error envelope, under a budget that admits rewriting, *and* the envelopes of both
stages are disjoint there.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import interp
from bisect_dump.difference_verdict import (
    CHANGED,
    UNSURE,
    Judgement,
    Output,
    beside,
    doubted,
    judgement,
    worst_of,
)
from bisect_dump.excerpts import with_results
from bisect_dump.shared_values import FUEL, Program, Reference, Values
from bisect_dump.side_by_side import SideBySide
from bisect_dump.similarity import is_far
from bisect_dump.stages import Read
from hlo.bit_equality import differences
from hlo.errors import OutOfFuel, Unsupported
from hlo.module import Module
from hlo.ranks import declared
from hlo.types import ArrayShape, Shape, TupleShape
from hlo.values import Array, Value, arrays_of, placed, placed_arrays
from interp.envelope.budget import REWRITTEN, Budget
from interp.envelope.enclosure import Enclosure
from interp.envelope.evaluation import enclose
from interp.envelope.sums_in_order import usual_budgets
from interp.envelope.verdict import OUTSIDE, UNDETERMINED, resolved

_MOST_OPENINGS = 8  # instructions named where an envelope opened
_MOST_KEPT = 3  # stages kept in memory: the first, the one before, and the present one

Arguments = Callable[[Module, Path, int], tuple[tuple[Value, ...], ...]]
K = TypeVar("K")


class Meanings:
    """Hold the stages of a module that share the interface of ``first``, and so its arguments,
    drawn by ``arguments(module, path, ranks)``."""

    def __init__(self, first: Read, arguments: Arguments, seed: int) -> None:
        self.first, self.seed = first, seed
        given = arguments(first.module, first.stage.path, first.ranks)
        self._arrays = [[leaf for _, leaf in placed(mine)] for mine in given]
        self._values = Values()
        self._references = [self._values.given(array) for array in self._arrays[0]]
        self._programs: OrderedDict[bytes, Program] = OrderedDict()
        self._results: OrderedDict[bytes, Reference] = OrderedDict()
        self._opened: dict[bytes, tuple[str, ...]] = {}  # by stage: why its envelope says little
        self._of_first: dict[
            int, Enclosure | None
        ] = {}  # enclosures of its results, by output number
        self._of_ranks: OrderedDict[bytes, list[list[tuple[str, Array]]]] = OrderedDict()

    def evaluate(self, stage: Read) -> None:
        """Evaluate a stage now, so that an Error is raised here."""
        if stage.ranks > 1:
            self._on_ranks(stage)
        else:
            self._result(stage)

    def judgement(self, before: Read, after: Read) -> Judgement:
        """Judge the later stage against the earlier one, and what is undetermined against the first
        stage. Raises Error if one of them cannot be evaluated."""
        if before.ranks > 1 or after.ranks > 1:
            return self._judged_by_bits(before, after)
        one, other = self._result(before), self._result(after)
        pairs = list(zip(placed_arrays(one), arrays_of(other), strict=True))
        if any(self._values.shape(a) != self._values.shape(b) for (_, a), b in pairs):
            return Judgement(OUTSIDE, {OUTSIDE: 1}, ("the results have other sizes",))
        outputs: dict[int, Output] = {}
        equal = 0
        for number, ((place, reference), later) in enumerate(pairs):
            pair = reference, later
            both = partial(self._both, pair)
            if pair[0] != pair[1] and differences(*both()):
                outputs[number] = Output(place, both, beside(None, *both()))
            else:
                equal += math.prod(self._values.shape(pair[0]))
        return self._judged_outputs(before, after, outputs, equal)

    def _both(self, pair: tuple[bytes, bytes]) -> tuple[Array, Array]:
        return self._values.value(pair[0]), self._values.value(pair[1])

    def _judged_outputs(
        self, before: Read, after: Read, outputs: dict[int, Output], equal: int
    ) -> Judgement:
        """Judge the outputs that differ: first by replay, step by step; only those that it leaves
        undetermined need the envelope of the whole program."""
        if not outputs:
            return judgement((), equal)
        side = self.side_by_side(before, after)
        steps = _marks_of_steps(side, outputs)
        if steps is not None:
            outputs = {n: outputs[n]._replace(marks=mark) for n, mark in steps.items()}
        left = [n for n, output in outputs.items() if output.has(UNSURE) or output.has(CHANGED)]
        if not left:
            return judgement(list(outputs.values()), equal)
        found = self._beside_all(before, after, {number: outputs[number] for number in left})
        is_proven = any(output.has(CHANGED) for output in found.values())
        if steps is not None and not is_proven:  # else the first stage would say no more
            found = self._beside_first(before, found)
        outputs |= found
        is_unsure = not is_proven and any(output.has(UNSURE) for output in found.values())
        opened = self._opened.get(before.digest, ())
        return judgement(list(outputs.values()), equal, is_unsure and _is_suspect(side), opened)

    def _beside_all(
        self, before: Read, after: Read, outputs: dict[int, Output]
    ) -> dict[int, Output]:
        """Judge outputs against the earlier stage's whole envelope; those outside also against the
        later stage's, since the rewritten program may be the less accurate."""
        whole = dict(outputs)
        legal = self._legal(before, list(outputs))
        for n, output in outputs.items():
            whole[n] = output._replace(marks=beside(legal[n], *output.both()))
            if not whole[n].has(CHANGED):
                del legal[n]  # free it: enclosures are as large as the outputs
        theirs = self._legal(after, list(legal)) if legal else {}
        for n in list(legal):
            whole[n] = doubted(whole[n], legal.pop(n), theirs.pop(n))
        for n, output in whole.items():
            whole[n] = output._replace(marks=resolved(output.marks, outputs[n].marks))
        return self._beside_usual(before, whole)

    def _beside_usual(self, before: Read, outputs: dict[int, Output]) -> dict[int, Output]:
        """Judge what is left by the narrow enclosures of sums as compilers usually order them:
        legal, and tight."""
        found = dict(outputs)
        for budget in usual_budgets(before.module, REWRITTEN):
            left = [n for n, output in found.items() if output.has(UNSURE)]
            for n, legal in self._legal(before, left, budget).items() if left else ():
                again = beside(legal, *found[n].both())
                found[n] = found[n]._replace(marks=resolved(found[n].marks, again))
        return found

    def _beside_first(self, before: Read, outputs: dict[int, Output]) -> dict[int, Output]:
        left = [number for number, output in outputs.items() if output.has(UNSURE)]
        if not left or before.digest == self.first.digest:
            return outputs
        missing = [number for number in left if number not in self._of_first]
        if missing:
            self._of_first |= self._legal(self.first, missing)
        references = list(arrays_of(self._result(self.first)))
        found = dict(outputs)
        for number in left:
            first, (_, after) = self._values.value(references[number]), outputs[number].both()
            if first.shape == after.shape:
                again = beside(self._of_first[number], first, after)
                marks = resolved(outputs[number].marks, again)
                found[number] = outputs[number]._replace(marks=marks)
        return found

    def _legal(
        self, stage: Read, results: list[int], peer: Budget = REWRITTEN
    ) -> dict[int, Enclosure | None]:
        """Enclose some outputs of a stage, by number; None if the envelope has no rule."""
        fewer = with_results(stage.module, results)
        module = stage.module if fewer is None else fewer
        try:
            found = enclose(module, *self._arguments(stage), peer=peer, seed=self.seed)
        except Unsupported as error:
            self._opened[stage.digest] = (str(error),)
            return dict.fromkeys(results)
        except MemoryError:
            self._opened[stage.digest] = ("the envelope does not fit into memory",)
            return dict.fromkeys(results)
        self._opened[stage.digest] = tuple(map(str, found.openings[:_MOST_OPENINGS]))
        enclosures = list(arrays_of(found.result))
        kept = enclosures if fewer is not None else [enclosures[n] for n in results]
        return dict(zip(results, kept, strict=True))

    def side_by_side(self, before: Read, after: Read) -> SideBySide:
        """Compare two stages of one rank on their arguments."""
        programs = self._program(before), self._program(after)
        given = self._given(before), self._given(after)
        return SideBySide(self._values, programs, given, self.seed)

    def _program(self, stage: Read) -> Program:
        return self._kept(self._programs, stage.digest, lambda: Program(stage.module, self.seed))

    def _result(self, stage: Read) -> Reference:
        if stage.digest not in self._results:
            program = self._program(stage)
            found = self._values.evaluated(program, self._given(stage))
            self._results[stage.digest] = found[program.module.entry.root]
        return self._results[stage.digest]

    def _given(self, stage: Read) -> tuple[Reference, ...]:
        """Return references of the stage's arguments, grouped into its tuples; raise ArgumentError
        if they do not fit."""
        steps = self._program(stage).steps
        arguments = steps.arguments(self._arguments(stage))
        if steps.is_bounded:
            return tuple(map(self._values.given, arguments))
        left = iter(self._references)
        return tuple(_gathered(p.shape, left) for p in stage.module.entry.parameters)

    def _arguments(self, stage: Read, rank: int = 0) -> tuple[Value, ...]:
        """Group the flat argument arrays as the stage's parameters do."""
        left = iter(self._arrays[rank if rank < len(self._arrays) else 0])
        return tuple(_gathered(p.shape, left) for p in stage.module.entry.parameters)

    def _judged_by_bits(self, before: Read, after: Read) -> Judgement:
        """Judge stages of several ranks bit by bit: the envelope encloses single ranks only."""
        one, other = self._on_ranks(before), self._on_ranks(after)
        if len(one) == 1 and len(other) > 1:
            one = one * len(other)
        if len(one) != len(other):
            return Judgement(UNDETERMINED, {})
        return worst_of([_by_bits(*pair) for pair in zip(one, other, strict=True)])

    def _on_ranks(self, stage: Read) -> list[list[tuple[str, Array]]]:
        def evaluated() -> list[list[tuple[str, Array]]]:
            values = tuple(self._arguments(stage, rank) for rank in range(stage.ranks))
            results = _evaluated(stage.module, values, self.seed)
            return [list(placed_arrays(result)) for result in results]

        return self._kept(self._of_ranks, stage.digest, evaluated)

    def _kept(self, kept: OrderedDict[bytes, K], key: bytes, make: Callable[[], K]) -> K:
        """Memoise by stage digest: for the first stage and the last few."""
        if key not in kept:
            kept[key] = make()
            others = [other for other in kept if other != self.first.digest]
            for other in others[: max(0, len(kept) - _MOST_KEPT)]:
                del kept[other]
        kept.move_to_end(key)
        return kept[key]


def _marks_of_steps(side: SideBySide, outputs: dict[int, Output]) -> dict[int, Array] | None:
    """Return verdicts by replay; None if the replay is unsupported or runs out of fuel or
    memory."""
    try:
        return dict(zip(outputs, side.marks(list(outputs)), strict=True))
    except (Unsupported, OutOfFuel, MemoryError):
        return None


def _is_suspect(side: SideBySide) -> bool:
    try:
        return side.is_suspect()
    except (Unsupported, OutOfFuel, MemoryError):
        return False


def _by_bits(one: list[tuple[str, Array]], other: list[tuple[str, Array]]) -> Judgement:
    """Compare the results of one rank bit by bit."""
    pairs = [(place, a, b) for (place, a), (_, b) in zip(one, other, strict=True)]
    if any(a.shape != b.shape for _, a, b in pairs):
        return Judgement(OUTSIDE, {OUTSIDE: 1}, ("the results have other sizes",))
    outputs = [
        Output(place, lambda both=(a, b): both, beside(None, a, b))  # type: ignore[misc]
        for place, a, b in pairs
    ]
    return judgement(outputs, 0, any(is_far(a, b) for _, a, b in pairs))


def _evaluated(
    module: Module, values: tuple[tuple[Value, ...], ...], seed: int
) -> tuple[Value, ...]:
    """Evaluate a module on the arguments of each rank."""
    if len(values) == 1:
        return (interp.evaluate(module, *values[0], seed=seed, fuel=FUEL),)
    replicas, partitions = declared(module)
    found: tuple[Value, ...] = interp.evaluate(
        module, *values, seed=seed, fuel=FUEL, replicas=replicas, partitions=partitions
    )
    return found


def _gathered(shape: Shape, left: Iterator[K]) -> tuple[K, ...] | K:
    if isinstance(shape, TupleShape):
        return tuple(_gathered(element, left) for element in shape.elements)  # type: ignore[misc]
    assert isinstance(shape, ArrayShape)
    return next(left)
