"""Where buffers live: one workspace in which lifetimes that do not overlap share memory.

The steps are numbered in text order. A buffer lives from the first to the last step that names it;
if it is defined before a loop and used in it, to the loop's end. Offsets are given greedily, the
largest buffer first, at the lowest place that is free during its whole life.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from backend_c.lower.plan import Branch, Buffer, Copy, Launch, Plan, Repeat, Step

ALIGNMENT = 64  # a cache line, and the widest vector


@dataclass(frozen=True, slots=True)
class Workspace:
    """Byte offsets by buffer, and how many bytes there are in all."""

    offsets: dict[Buffer, int]
    bytes: int


def assign(plan: Plan) -> Workspace:
    """Give every buffer that is no argument, result or constant its place."""
    lives = _lives(plan)
    order = sorted(lives, key=lambda buffer: (-buffer.bytes, buffer.number))
    placed: list[tuple[int, int, tuple[int, int]]] = []  # start, end, life
    offsets: dict[Buffer, int] = {}
    for buffer in order:
        first, last = lives[buffer]
        size = -(-max(buffer.bytes, 1) // ALIGNMENT) * ALIGNMENT
        start = 0
        for begin, end, (other_first, other_last) in placed:
            apart = other_last < first or last < other_first
            if not apart and begin < start + size and start < end:
                start = end
        insort(placed, (start, start + size, (first, last)))
        offsets[buffer] = start
    return Workspace(offsets, max((end for _, end, _ in placed), default=0))


def apart(plan: Plan) -> Workspace:
    """The same, but that no place is used twice and that nobody's bytes are between any two: what
    reads or writes beyond its buffer meets them, and what reads before it writes meets nothing
    of an earlier buffer."""
    offsets: dict[Buffer, int] = {}
    end = ALIGNMENT
    for buffer in sorted(_lives(plan), key=lambda buffer: buffer.number):
        offsets[buffer] = end
        end += (buffer.bytes // ALIGNMENT + 2) * ALIGNMENT
    return Workspace(offsets, end)


def _lives(plan: Plan) -> dict[Buffer, tuple[int, int]]:
    """The first and the last step of each buffer that lies in the workspace."""
    elsewhere = {*plan.arguments, *plan.results, *(buffer for buffer, _ in plan.constants)}
    elsewhere |= {b.sizes for b in (*plan.arguments, *plan.results) if b.sizes is not None}
    return {b: life for b, life in _lifetimes(plan.steps).items() if b not in elsewhere}


def _lifetimes(steps: Sequence[Step]) -> dict[Buffer, tuple[int, int]]:
    first: dict[Buffer, int] = {}
    last: dict[Buffer, int] = {}
    clock = 0

    def visit(step: Step) -> None:
        nonlocal clock
        clock += 1
        start = clock
        for buffer in _named(step):
            first.setdefault(buffer, clock)
            last[buffer] = clock
        for inner in _inner(step):
            visit(inner)
        if isinstance(step, Repeat):
            clock += 1
            for buffer, begin in first.items():
                if begin < start <= last[buffer]:
                    last[buffer] = clock
            last[step.predicate] = clock

    for step in steps:
        visit(step)
    return {buffer: (begin, last[buffer]) for buffer, begin in first.items()}


def _named(step: Step) -> Iterator[Buffer]:
    match step:
        case Launch(_, inputs, outputs, scratch):
            yield from (*inputs, *outputs, *scratch)
        case Copy(source, target):
            yield from (source, target)
        case Branch(selector, _):
            yield selector
        case _:
            return


def _inner(step: Step) -> Iterator[Step]:
    match step:
        case Repeat(condition, _, body):
            yield from (*condition, *body)
        case Branch(_, cases):
            for case in cases:
                yield from case
        case _:
            return
