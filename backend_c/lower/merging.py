"""Merge loops over the same elements (multi-output fusion): arrays that both read are read once.

A fusion has one result, so that a training step has a kernel for each weight's moments and another
for the weight, which read the same gradient. Of two launches of maps, loops over all elements in
order, the later one joins the earlier one, or the earlier one the later one, if no step in between
minds, and if they share an array. What the later one reads of the earlier one's results at its own
index it takes from the register; a result that nothing else reads is not stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from backend_c.ir.common_values import with_common_values
from backend_c.ir.dead_lets import without_dead_lets
from backend_c.ir.loop_ir import Array, Expr, Kernel, Let, Load, Statement, Store, Variable
from backend_c.ir.names import with_same
from backend_c.ir.renaming import Renaming
from backend_c.lower.maps import Map, map_of
from backend_c.lower.plan import (
    Buffer,
    Launch,
    Plan,
    Step,
    buffers_of,
    in_order,
    read_and_changed,
    with_launched_kernels,
    with_steps,
)
from backend_c.lower.views import with_views

_LEAST = 1 << 10  # elements: a loop over fewer is done before it matters
_MOST_PARTS = 600  # subexpressions of a merged loop: what fits the registers, and compiles soon
_MOST_ARRAYS = 12  # that a loop walks through side by side
_BACK = 24  # steps that are looked at for one to merge with


def with_merged_loops(plan: Plan) -> Plan:
    """Merge launches in every list of steps of a plan."""
    merging = _Merging(plan)
    steps = merging.merged(plan.steps)
    return with_launched_kernels(replace(plan, kernels=merging.kernels, steps=steps))


class _Merging:
    """Merge the launches of one plan; ``kernels`` grows by the merged ones."""

    def __init__(self, plan: Plan) -> None:
        self.kernels = [*plan.kernels]
        self._uses = Counter(b for _, step in in_order(plan.steps) for b in {*buffers_of(step)})
        # Of what has views, more than launches that name it may read.
        self._kept = {*plan.arguments, *plan.results, *with_views(plan)}

    def merged(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        """Merge launches in a list of steps, and in those inside it."""
        done: list[Step] = []
        for step in steps:
            step = with_steps(step, self.merged)
            if not (isinstance(step, Launch) and self._joined(done, step)):
                done.append(step)
        return tuple(done)

    def _joined(self, done: list[Step], launch: Launch) -> bool:
        """Merge a launch into one of the last ``_BACK`` steps, if one fits; return whether it
        did."""
        later = self._map(launch)
        if later is None:
            return False
        for place in range(len(done) - 1, max(len(done) - _BACK, 0) - 1, -1):
            step = done[place]
            earlier = self._map(step) if isinstance(step, Launch) else None
            if earlier is None or not self._is_wanted(earlier, later):
                continue
            between = done[place + 1 :]
            if not any(_conflicts(launch, other) for other in between):
                done[place] = self._one(earlier, later)
                return True
            if not any(_conflicts(earlier.launch, other) for other in between):
                done[place:] = [*between, self._one(earlier, later)]
                return True
        return False

    def _map(self, launch: Launch) -> Map | None:
        """Return a launch as a map that stores element i of each result in trip i; else None."""
        found = map_of(launch, self.kernels[launch.kernel])
        if found is None or any(s.offset != found.loop.variable for s in found.stores()):
            return None
        return found

    def _is_wanted(self, earlier: Map, later: Map) -> bool:
        """Return whether fusing two maps is legal and saves a read of a large enough array."""
        if (
            earlier.loop.extent != later.loop.extent
            or earlier.kernel.numerics != later.kernel.numerics
        ):
            return False
        written = {*earlier.launch.outputs}
        # An iteration of the earlier loop may read or write any element that one of the later loop,
        # now before it, overwrites.
        if {*earlier.launch.inputs, *written} & {*later.launch.outputs}:
            return False
        read = {*later.launch.inputs}
        shared = (read & written) | (read & {*earlier.launch.inputs})
        if not any(buffer.shape.elements >= _LEAST for buffer in shared):
            return False
        arrays = {*earlier.launch.inputs, *written, *read, *later.launch.outputs}
        if len(arrays) > _MOST_ARRAYS or earlier.size() + later.size() > _MOST_PARTS:
            return False
        # Of what the earlier one computes, the element at the same index only.
        buffers, own = later.buffers(), later.loop.variable
        return all(load.offset == own for load in later.loads() if buffers[load.array] in written)

    def _one(self, earlier: Map, later: Map) -> Launch:
        """Build the merged kernel of two maps; return its launch."""
        launches = earlier.launch, later.launch
        dead = {b for b in launches[0].outputs if self._is_dead(b, launches[1])}
        rest = [b for b in launches[1].inputs if b not in earlier.buffers().values()]
        inputs = (*launches[0].inputs, *rest)
        outputs = tuple(b for launch in launches for b in launch.outputs if b not in dead)
        # What both launches name, one launch names from here on.
        self._uses.subtract({*buffers_of(launches[0])} & {*buffers_of(launches[1])})
        kernel = _one_kernel(earlier, later, inputs, outputs, len(self.kernels))
        self.kernels.append(kernel)
        joined = (*launches[0].origin.joined, launches[1].origin)
        origin = replace(launches[0].origin, joined=joined)
        return Launch(len(self.kernels) - 1, inputs, outputs, (), origin)

    def _is_dead(self, buffer: Buffer, reader: Launch) -> bool:
        """Return whether ``reader`` alone reads a buffer, so that it need not be stored."""
        # Two launches name it: the one that writes it, and the reader.
        is_read = buffer in reader.inputs
        return is_read and buffer not in self._kept and self._uses[buffer] == 2


def _one_kernel(
    earlier: Map,
    later: Map,
    inputs: Sequence[Buffer],
    outputs: Sequence[Buffer],
    number: int,
) -> Kernel:
    """Fuse the loops of two maps into one kernel; ``number`` makes names of variables unique."""
    arrays = {**later.arrays(), **earlier.arrays()}
    arrays = {
        buffer: arrays[buffer]._replace(name=f"{letter}{n}")
        for letter, buffers in (("a", inputs), ("r", outputs))
        for n, buffer in enumerate(buffers)
    }
    index = earlier.loop.variable
    results: dict[Buffer, Variable] = {}  # of the earlier one, at the index

    def renaming(one: Map, ending: str) -> Renaming:
        buffers = one.buffers()

        def load(array: Array, offset: Expr) -> Expr:
            buffer = buffers[array]
            return results[buffer] if buffer in results else Load(arrays[buffer], offset)

        own = {one.loop.variable: index}
        return Renaming(lambda array: arrays.get(buffers[array]), load, ending, own)

    first, second = renaming(earlier, ""), renaming(later, f"x{number}")
    target = earlier.buffers()
    body: list[Statement] = []
    stores: list[Store] = []
    names: dict[str, str] = {}  # of what the earlier one stored, by those of the values
    for statement in earlier.loop.body:
        if isinstance(statement, Store):
            buffer = target[statement.array]
            kept = Variable(statement.value.type, f"w{number}x{len(body)}")
            names[kept.name] = statement.array.name
            body.append(Let(kept, first.expression(statement.value)))
            results[buffer] = kept
            if buffer in outputs:
                stores.append(Store(arrays[buffer], index, kept))
        else:
            body.append(first.statement(statement))
    body += second.block(later.loop.body)
    # A load after a store to an address that differs by a multiple of 4 KiB waits for it.
    lets = [s for s in body if isinstance(s, Let)]
    stores += [s for s in body if isinstance(s, Store)]
    bound = [
        let
        for let in (*first.block(earlier.bound), *second.block(later.bound))
        if isinstance(let, Let)
    ]
    before = {let.variable for let in bound}
    values, same = with_common_values([*bound, *lets, *stores])
    once = sum(isinstance(s, Let) and s.variable in before for s in values)  # these come first
    # "parallel lanes" if one of them is: threads pay for that one alone.
    kind = max(earlier.loop.kind, later.loop.kind, key=len)
    return replace(
        earlier.kernel,
        inputs=tuple(arrays[buffer] for buffer in inputs),
        outputs=tuple(arrays[buffer] for buffer in outputs),
        # A kernel may be given an array that it does not read.
        body=without_dead_lets(
            (*values[:once], earlier.loop._replace(kind=kind, body=values[once:]))
        ),
        origins=with_same(
            {
                **first.origins(earlier.kernel),
                **{kept: earlier.kernel.origins.get(name, ()) for kept, name in names.items()},
                **second.origins(later.kernel, 1 + len(earlier.launch.origin.joined)),
            },
            same,
        ),
    )


def _conflicts(launch: Launch, other: Step) -> bool:
    """Return whether a launch depends on a step, or the step on it: they may not be reordered."""
    read, changed = map(_bases, read_and_changed(other))
    outputs, inputs = _bases(launch.outputs), _bases(launch.inputs)
    return bool(outputs & (read | changed) or inputs & changed)


def _bases(buffers: Iterable[Buffer]) -> set[Buffer]:
    """Return the buffers with memory of their own in which buffers lie."""
    return {buffer.base for buffer in buffers}
