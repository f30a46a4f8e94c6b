"""Allocate buffers in one workspace by liveness: disjoint lifetimes share memory.

Steps are numbered in text order. A buffer is live from the first step that names it to the last;
one that is defined before a loop and used in it, to the loop's end, as the next iteration may read
it. A view is its base. Offsets are assigned greedily by size, largest first, at the lowest offset
that is free during the whole lifetime (Pisarchyk and Lee, "Efficient memory management for deep
neural net inference", 2020: greedy by size).
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from backend_c.lower.plan import (
    Buffer,
    Exchange,
    Plan,
    Repeat,
    Step,
    buffers_of,
    in_order,
    inner_steps,
)

ALIGNMENT = 64  # a cache line, and the widest vector
_WORD = 8
_PAGE = 4096  # bytes, after which addresses have the same set of a first-level cache
_GAP = 5 * ALIGNMENT  # odd, so that 64 buffers begin in 64 sets
_ATTEMPTS = 64  # at a smaller workspace
Lifetimes = Mapping[Buffer, tuple[int, float]]  # the first and the last step of each


@dataclass(frozen=True, slots=True)
class Workspace:
    """Hold the byte offsets by buffer, and the number of bytes in all."""

    offsets: dict[Buffer, int]
    bytes: int


def allocate(plan: Plan) -> Workspace:
    """Allocate every buffer that is no argument, result or constant."""
    lives = workspace_lifetimes(plan)
    # Ties by number, so that the same plan gets the same offsets in every run.
    order = sorted(lives, key=lambda buffer: (-buffer.bytes, buffer.number))
    return _placed(order, lives, lambda buffer: ALIGNMENT, _room)


def _room(buffer: Buffer) -> int:
    """Return the bytes between the beginnings of a buffer and of one that is placed after it.

    Where they are pages, all buffers would begin in one set of the first cache, which has eight to
    twelve lines: a loop that reads more arrays at once loads each line again for each vector.
    """
    return buffer.bytes + (0 if buffer.bytes % _PAGE or not buffer.bytes else _GAP)


def allocate_tightly(plan: Plan) -> Workspace:
    """Allocate the same buffers for a target without memory to spare, aligned to their elements.

    While the workspace exceeds the liveness bound, the buffers at its end are placed first the next
    time: greedy placement, improved by priorities. From the largest to the smallest it starts, then
    in the order of their first steps, by which chains of layers take turns at both ends.
    """
    lives = workspace_lifetimes(plan)
    bound, best = peak(plan).bytes, Workspace({}, 0)
    by_size = sorted(lives, key=lambda buffer: (-buffer.bytes, buffer.number))
    for first in (by_size, sorted(by_size, key=lambda buffer: lives[buffer][0])):
        order = first
        for _ in range(_ATTEMPTS):
            workspace = _placed(order, lives, _own_alignment)
            if not best.offsets or workspace.bytes < best.bytes:
                best = workspace
            if best.bytes <= bound:
                return best
            last = [b for b in order if workspace.offsets[b] + max(b.bytes, 1) == workspace.bytes]
            order = [*last, *(b for b in order if b not in last)]
    return best


def _own_alignment(buffer: Buffer) -> int:
    """Return a buffer's alignment in bytes: the size of an element, at most 8 (complex numbers are
    aligned as their parts are).
    """
    return min(buffer.shape.element_type.numpy.itemsize, _WORD)


def _placed(
    order: Sequence[Buffer],
    lives: Lifetimes,
    alignment: Callable[[Buffer], int],
    room: Callable[[Buffer], int] = lambda buffer: buffer.bytes,
) -> Workspace:
    """Place buffers one after the other, each at the lowest offset that is free while it lives."""
    placed: list[tuple[int, int, tuple[int, float]]] = []  # start, end, life
    offsets: dict[Buffer, int] = {}
    for buffer in order:
        first, last = lives[buffer]
        unit = alignment(buffer)
        # Empty buffers get an address, too: kernels are given one for each.
        size = -(-max(room(buffer), 1) // unit) * unit
        start = 0
        # Sorted by offset, so this finds the lowest gap between the buffers that are live at the
        # same time.
        for begin, end, (other_first, other_last) in placed:
            disjoint = other_last < first or last < other_first
            if not disjoint and begin < start + size and start < end:
                start = -(-end // unit) * unit
        insort(placed, (start, start + size, (first, last)))
        offsets[buffer] = start
    return Workspace(offsets, max((end for _, end, _ in placed), default=0))


def allocate_apart(plan: Plan) -> Workspace:
    """Allocate the same buffers without any sharing, and with a gap between any two.

    For tests of generated code: a read or write beyond a buffer meets nobody's bytes, and a read
    before any write meets nothing of an earlier buffer.
    """
    offsets: dict[Buffer, int] = {}
    end = ALIGNMENT
    for buffer in sorted(workspace_lifetimes(plan), key=lambda buffer: buffer.number):
        offsets[buffer] = end
        end += (buffer.bytes // ALIGNMENT + 2) * ALIGNMENT
    return Workspace(offsets, end)


@dataclass(frozen=True, slots=True)
class Peak:
    """Hold the largest sum of bytes of simultaneously live buffers, and the step where it occurs.

    Steps are numbered in the order of the text, from 1.
    """

    bytes: int
    step: int


def peak(plan: Plan) -> Peak:
    """Return the liveness bound of a plan: no allocation of its buffers takes less."""
    lives = workspace_lifetimes(plan)
    changes: dict[float, int] = {}
    for buffer, (first, last) in lives.items():
        changes[first] = changes.get(first, 0) + buffer.bytes
        # In the step itself it is alive, beside what begins there.
        changes[last + 0.5] = changes.get(last + 0.5, 0) - buffer.bytes
    best, live = Peak(0, 0), 0
    for time in sorted(changes):
        live += changes[time]
        if live > best.bytes:
            best = Peak(live, int(time))
    return best


def workspace_lifetimes(plan: Plan) -> dict[Buffer, tuple[int, float]]:
    """Return the live ranges of workspace buffers: all but arguments, results and constants."""
    elsewhere = {*plan.arguments, *plan.results, *(buffer for buffer, _ in plan.constants)}
    elsewhere |= {b.sizes for b in (*plan.arguments, *plan.results) if b.sizes is not None}
    lives = lifetimes(plan.steps)
    for together in exchanged(plan.steps):
        # Each may be anywhere that one of them is, and a result is read in the end.
        end = math.inf if together & set(plan.results) else 0
        first = min(lives[buffer][0] for buffer in together)
        last = max(end, *(lives[buffer][1] for buffer in together))
        lives |= dict.fromkeys(together, (first, last))
    return {b: life for b, life in lives.items() if b not in elsewhere}


def exchanged(steps: Sequence[Step]) -> list[set[Buffer]]:
    """Partition the buffers that :class:`Exchange` steps swap into sets that share addresses."""
    groups: list[set[Buffer]] = []
    for _, step in in_order(steps):
        if isinstance(step, Exchange):
            pair = {step.source, step.target}
            groups = [
                pair.union(*(group for group in groups if group & pair)),
                *(group for group in groups if not group & pair),
            ]
    return groups


def lifetimes(steps: Sequence[Step]) -> dict[Buffer, tuple[int, float]]:
    """Return the live range of each buffer: the numbers of its first and its last step."""
    first: dict[Buffer, int] = {}
    last: dict[Buffer, float] = {}
    clock = 0

    def visit(step: Step) -> None:
        nonlocal clock
        clock += 1
        start = clock
        for buffer in buffers_of(step):
            first.setdefault(buffer.base, clock)
            last[buffer.base] = clock
        for inner in inner_steps(step):
            visit(inner)
        # The back edge: what was defined before the loop must survive every iteration. The
        # predicate is read between condition and body, at a time that has no number: it is kept
        # throughout.
        if isinstance(step, Repeat):
            clock += 1
            for buffer, begin in first.items():
                # What is read after a loop is its state, or an array that its trips fill: both are
                # named before it, too, so that the last evaluation of the condition spares them.
                if begin < start <= last[buffer]:
                    last[buffer] = clock
            last[step.predicate.base] = clock

    for step in steps:
        visit(step)
    return {buffer: (begin, last[buffer]) for buffer, begin in first.items()}
