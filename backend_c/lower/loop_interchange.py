"""Interchange the trips of a `while` with its loops over elements, where elements are independent.

A `while` runs its maps over all elements in every trip, so that a state of any size goes through
memory as often, and threads wait for each other. Where no element of the state depends on another
one, a block of elements can do all trips before the next block starts: one kernel, in which the
state stays in registers or in the first level of the cache.

That is legal if every step of the loop is one of these, ``n`` being the number of elements:

* a map over ``n`` elements that reads, of loop-variant buffers, and stores only its own element;
* a copy of such a buffer;
* a step on few elements, shared by all, which depends only on other shared ones: a counter, a key.
  Each block computes it anew, and the loop is kept for those that are needed afterwards.

It does not pay where trips read rows of a larger array: whole rows are read ahead of use, parts of
them are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    Apply,
    Barrier,
    Call,
    Kernel,
    Statement,
    every,
    inside,
    parts,
)
from backend_c.ir.settings import Settings
from backend_c.lower.interchanged_kernel import Interchange, interchanged_kernel
from backend_c.lower.maps import Map, map_of
from backend_c.lower.plan import (
    Buffer,
    Copy,
    Launch,
    Origin,
    Plan,
    Repeat,
    Step,
    buffers_of,
    in_order,
    read_and_changed,
    with_launched_kernels,
    with_steps,
)

_FEW = 16  # elements that all share: what registers hold
# Operations on what all share for one on an element: a block has some hundred elements, of which
# vectors do a dozen at a time.
_MOST_SHARED = 4
_TRIPS = 16  # of a loop: whether threads pay is decided before it is known
_VECTOR = 16  # elements: blocks of whole vectors
_LEAST_BLOCK = 64  # elements
_BLOCK_BYTES = 1024  # of the widest part of the state
_MOST_HELD = 1 << 16  # bytes of a block on the stack of a thread
_MOST_BYTES = 1 << 14  # of the state of a block: half of the first level of the cache


def with_interchanged_loops(plan: Plan, settings: Settings) -> Plan:
    """Replace loops by interchanged kernels: in a nest the outermost loop for which it is legal."""
    if settings.is_scalar:
        return plan
    kernels = [*plan.kernels]
    mentions = _mentions(plan.steps)
    kept = {*plan.arguments, *plan.results}

    def change(steps: Sequence[Step], later: set[Buffer]) -> tuple[Step, ...]:
        found: list[Step] = []
        # Backwards, so that ``later`` has the buffers that the steps after each one read.
        for step in reversed(steps):
            found += reversed(replaced(step, later))
            later = later | {*_reads((step,))}
        return tuple(reversed(found))

    def replaced(step: Step, later: set[Buffer]) -> tuple[Step, ...]:
        """Replace a loop by its kernel if legal; ``later`` are buffers read after it."""
        if isinstance(step, Repeat):
            outside = kept | {*(mentions - _mentions((step,)))}
            found = _interchange(step, kernels, outside, settings.least_interchanged)
            if found is not None:
                launch = _launched(found, kernels, settings)
                left = found.shared & (kept | later)
                # The launch first: it reads the shared state that the loop behind it overwrites.
                return (launch, _of_shared(step, found)) if left else (launch,)
            later = later | {*_reads((step,))}  # by the next trip
        return (with_steps(step, lambda steps: change(steps, later)),)

    steps = change(plan.steps, set())
    if len(kernels) == len(plan.kernels):
        return plan
    return with_launched_kernels(replace(plan, kernels=kernels, steps=steps))


def _mentions(steps: Sequence[Step]) -> Counter[Buffer]:
    """Count how often steps name each buffer."""
    return Counter(buffer for _, step in in_order(steps) for buffer in buffers_of(step))


def _reads(steps: Sequence[Step]) -> Counter[Buffer]:
    """Count how often steps may read each buffer: every mention but as the target of a copy."""
    targets = (step.target for _, step in in_order(steps) if isinstance(step, Copy))
    return _mentions(steps) - Counter(targets)


def _launched(found: Interchange, kernels: list[Kernel], settings: Settings) -> Launch:
    """Append the interchanged kernel to ``kernels``; return its launch."""
    operations, _ = _operations(found.repeat, found)
    # Each thread of a GPU has one element.
    block_size = 1 if settings.has_blocks else _block_size(found)
    work = found.elements * operations * _TRIPS
    is_parallel = found.elements > block_size and work >= settings.grain
    kernels.append(interchanged_kernel(found, block_size, is_parallel=is_parallel))
    origin = merged_origin(found.repeat, found.numbers)
    return Launch(len(kernels) - 1, found.inputs, found.outputs, (), origin)


def merged_origin(repeat: Repeat, launches: Iterable[Launch]) -> Origin:
    """Return the origin of the launch that replaces a loop, with that of each launch in it."""
    around = dict(_loops_around(repeat, ()))
    origins = [
        replace(one, joined=(), loops=around[step])
        for step in launches
        for one in (step.origin, *step.origin.joined)
    ]
    return replace(origins[0], joined=tuple(origins[1:]))


def _loops_around(
    repeat: Repeat, outside: tuple[Origin, ...]
) -> Iterator[tuple[Launch, tuple[Origin, ...]]]:
    """Yield the launches in a loop with the loops around each, outermost first."""
    inside = (*outside, repeat.origin)
    for step in (*repeat.condition, *repeat.body):
        if isinstance(step, Repeat):
            yield from _loops_around(step, inside)
        elif isinstance(step, Launch):
            yield step, inside


def _numbered(repeat: Repeat, shared: set[Buffer]) -> dict[Launch, int]:
    """Number the launches in a loop for :class:`Computed`, those that compute shared state last."""
    # The first one names the merged launch: a map over the elements, not a counter.
    launches = [step for _, step in in_order((repeat,)) if isinstance(step, Launch)]
    return merged_numbers(sorted(launches, key=lambda step: step.outputs[0] in shared))


def merged_numbers(launches: Iterable[Launch]) -> dict[Launch, int]:
    """Number launches that are merged: each takes a number, and one per launch merged before."""
    numbers: dict[Launch, int] = {}
    number = 0
    for launch in launches:
        if launch not in numbers:
            numbers[launch] = number
            number += 1 + len(launch.origin.joined)
    return numbers


def _of_shared(repeat: Repeat, found: Interchange) -> Repeat:
    """Strip a loop to the steps that compute shared state."""

    def change(steps: Sequence[Step]) -> tuple[Step, ...]:
        return tuple(
            _of_shared(step, found) if isinstance(step, Repeat) else step
            for step in steps
            if isinstance(step, Repeat) or _written(step) <= found.shared
        )

    return replace(repeat, condition=change(repeat.condition), body=change(repeat.body))


def _written(step: Step) -> set[Buffer]:
    """Return the buffers that a step, or a step inside it, changes."""
    return read_and_changed(step)[1]


# What may become one kernel


def _interchange(
    repeat: Repeat, kernels: Sequence[Kernel], outside: set[Buffer], least: int
) -> Interchange | None:
    """Analyse a loop over ``least`` elements or more; None if illegal or unprofitable."""
    read, changed = read_and_changed(repeat)
    elements = _elements(repeat, kernels)
    if elements < least or any(b.sizes is not None for b in read | changed):
        return None
    # Less than the maps have: no buffer is both shared and own.
    shared = {b for b in changed if b.shape.elements <= min(_FEW, elements - 1)}
    own = {b for b in changed if b.shape.elements == elements}
    begun = [b for b in _in_order_of_use(repeat) if b not in changed or b in outside]
    outputs = tuple(b for b in begun if b in changed and b not in shared)
    inputs = tuple(b for b in begun if b not in outputs)
    sets = frozenset(own), frozenset(shared)
    numbers = _numbered(repeat, shared)
    found = Interchange(repeat, kernels, numbers, elements, inputs, outputs, *sets)
    if not all(_is_legal(step, found, changed) for _, step in in_order((repeat,))):
        return None
    held = sum(map(_bytes, own)) * _LEAST_BLOCK
    if held > _MOST_HELD or any(b.shape.elements > elements for b in read):
        return None
    operations, operations_on_shared = _operations(repeat, found)
    return found if operations_on_shared <= _MOST_SHARED * operations else None


def _elements(repeat: Repeat, kernels: Sequence[Kernel]) -> int:
    """Return the extent of the largest map in a loop; 0 if it has none."""
    return max(
        (
            ix.value_of(one.loop.extent) or 0
            for _, step in in_order((repeat,))
            if isinstance(step, Launch) and (one := map_of(step, kernels[step.kernel])) is not None
        ),
        default=0,
    )


def _in_order_of_use(repeat: Repeat) -> list[Buffer]:
    """Return the buffers that a loop names, in the order of their first use."""
    steps = (step for _, step in in_order((repeat,)))
    return list(dict.fromkeys(b for step in steps for b in buffers_of(step)))


def _is_legal(step: Step, found: Interchange, changed: set[Buffer]) -> bool:
    """Return whether after a step each element depends on its own past and shared state only."""
    match step:
        case Repeat():
            return step.predicate in found.shared or step.predicate not in changed
        case Copy(source, target):
            is_shared = target in found.shared
            before = source not in changed or source in (found.shared if is_shared else found.own)
            return before and (is_shared or target in found.own)
        case Launch() if found.shared & {*step.outputs}:
            return _is_on_shared(step, found, changed)
        case Launch():
            one = map_of(step, found.kernels[step.kernel])
            return one is not None and _is_on_own(one, found, changed)
        case _:
            return False


def _is_on_shared(launch: Launch, found: Interchange, changed: set[Buffer]) -> bool:
    """Return whether a kernel writes shared state only, and reads no other loop-variant buffer."""
    kernel = found.kernels[launch.kernel]
    return (
        kernel.is_plain
        and {*launch.outputs} <= found.shared
        and {*launch.inputs} & changed <= found.shared
        and not any(isinstance(statement, Call | Barrier) for statement in every(kernel.body))
    )


def _is_on_own(one: Map, found: Interchange, changed: set[Buffer]) -> bool:
    """Return whether a map accesses loop-variant, unshared buffers at its own index only."""
    buffers, own = one.buffers(), one.loop.variable
    if ix.value_of(one.loop.extent) != found.elements:
        return False

    is_stored = all(s.offset == own and buffers[s.array] in found.own for s in one.stores())
    free = found.shared | ({*buffers.values()} - changed)
    return is_stored and all(
        load.offset == own or buffers[load.array] in free for load in one.loads()
    )


# What pays


def _operations(repeat: Repeat, found: Interchange) -> tuple[int, int]:
    """Count the operations of one trip: (on each element, on shared state)."""
    counts = [0, 0]
    for _, step in in_order((repeat,)):
        if isinstance(step, Launch):
            is_shared = _written(step) <= found.shared
            counts[is_shared] += _applied(found.kernels[step.kernel].body)
        elif isinstance(step, Copy):
            counts[step.target in found.shared] += 1
    return counts[0], counts[1]


def _applied(body: Sequence[Statement]) -> int:
    """Count operations, those of nested loops once for each level that they are nested in."""
    count = 0
    for statement in body:
        count += sum(isinstance(part, Apply) for part in parts([statement]))
        count += _applied(inside(statement))
    return count


def _block_size(found: Interchange) -> int:
    """Choose the elements of a block: near the size wished for, if possible a divisor of all."""
    held = [_bytes(buffer) for buffer in found.own]
    wished = max(_BLOCK_BYTES // max(held), _LEAST_BLOCK)
    wished = (
        min(wished, max(_MOST_BYTES // max(sum(held), 1), _LEAST_BLOCK))
        // _LEAST_BLOCK
        * _LEAST_BLOCK
    )
    if found.elements <= wished * 3 // 2:
        return found.elements
    near = range(wished * 3 // 2, wished // 2, -_VECTOR)
    return next((size for size in near if found.elements % size == 0), wished)


def _bytes(buffer: Buffer) -> int:
    """Return the bytes of one element in a register: narrow floats are held as f32."""
    element_type = buffer.shape.element_type
    size = element_type.numpy.itemsize
    return max(size, 4) if element_type.is_float else size
