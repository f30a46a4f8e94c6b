"""Merge loops over the same elements (multi-output fusion): arrays that both read are read once.

A fusion has one result, so that a training step has a kernel for each weight's moments and another
for the weight, which read the same gradient. Of two launches of maps, loops over all elements in
order, the later one joins the earlier one, or the earlier one the later one, if no step in between
minds, and if they share an array. What the later one reads of the earlier one's results at its own
index it takes from the register; a result that nothing else reads is not stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from backend_c.ir.common_values import with_common_values
from backend_c.ir.dead_lets import without_dead_lets
from backend_c.ir.loop_ir import (
    Array,
    Expr,
    Kernel,
    Let,
    Load,
    Loop,
    Origins,
    Statement,
    Store,
    Variable,
    expressions,
    subexpressions,
)
from backend_c.ir.loop_rewriting import with_operands
from backend_c.lower.plan import (
    Branch,
    Buffer,
    Launch,
    Plan,
    Repeat,
    Step,
    buffers_of,
    in_order,
    read_and_changed,
)

_LEAST = 1 << 10  # elements: a loop over fewer is done before it matters
_MOST_PARTS = 600  # subexpressions of a merged loop: what fits the registers, and compiles soon
_MOST_ARRAYS = 12  # that a loop walks through side by side
_BACK = 24  # steps that are looked at for one to merge with
_LANES = ("lanes", "parallel lanes")


def with_merged_loops(plan: Plan) -> Plan:
    """Merge launches in every list of steps of a plan."""
    merging = _Merging(plan)
    steps = merging.merged(plan.steps)
    numbers: dict[int, int] = {}  # of the kernels that are launched, in their new order
    for _, step in in_order(steps):
        if isinstance(step, Launch):
            numbers.setdefault(step.kernel, len(numbers))
    kernels = [merging.kernels[number] for number in numbers]
    return replace(plan, kernels=kernels, steps=_renumbered(steps, numbers))


def _renumbered(steps: Sequence[Step], numbers: Mapping[int, int]) -> tuple[Step, ...]:
    """Return steps that launch kernels by their new numbers."""
    renumbered: list[Step] = []
    for step in steps:
        match step:
            case Launch():
                step = replace(step, kernel=numbers[step.kernel])
            case Repeat(condition, _, body):
                inner = _renumbered(condition, numbers), _renumbered(body, numbers)
                step = replace(step, condition=inner[0], body=inner[1])
            case Branch(_, cases):
                step = replace(step, cases=tuple(_renumbered(case, numbers) for case in cases))
            case _:
                pass
        renumbered.append(step)
    return tuple(renumbered)


@dataclass(frozen=True, slots=True)
class _Map:
    """Hold the parts of a map: values bound once, and the loop over all elements."""

    launch: Launch
    kernel: Kernel
    bound: tuple[Let, ...]
    loop: Loop

    def buffers(self) -> dict[Array, Buffer]:
        """Return the buffers of the kernel's arrays."""
        arrays = (*self.kernel.inputs, *self.kernel.outputs)
        return dict(zip(arrays, (*self.launch.inputs, *self.launch.outputs), strict=True))

    def arrays(self) -> dict[Buffer, Array]:
        """Return the kernel's arrays by their buffers."""
        return {buffer: array for array, buffer in self.buffers().items()}

    def loads(self) -> list[Load]:
        """Return all loads, those of the loop last."""
        parts = (p for s in (*self.bound, *self.loop.body) for e in expressions(s)
                 for p in subexpressions(e))  # fmt: skip
        return [part for part in parts if type(part) is Load]


class _Merging:
    """Merge the launches of one plan."""

    def __init__(self, plan: Plan) -> None:
        self.kernels = [*plan.kernels]
        self._uses = Counter(b for _, step in in_order(plan.steps) for b in {*buffers_of(step)})
        self._kept = {*plan.arguments, *plan.results}

    def merged(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        """Merge launches in a list of steps, and in those inside it."""
        done: list[Step] = []
        for step in steps:
            match step:
                case Repeat(condition, _, body):
                    inner = self.merged(condition), self.merged(body)
                    step = replace(step, condition=inner[0], body=inner[1])
                case Branch(_, cases):
                    step = replace(step, cases=tuple(map(self.merged, cases)))
                case _:
                    pass
            if not (isinstance(step, Launch) and self._joined(done, step)):
                done.append(step)
        return tuple(done)

    def _joined(self, done: list[Step], launch: Launch) -> bool:
        """Merge a launch with one of the last steps, if it can be."""
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

    def _map(self, launch: Launch) -> _Map | None:
        """Return the parts of a launch that is a map, else None."""
        kernel = self.kernels[launch.kernel]
        *bound, loop = kernel.body
        is_plain = not (kernel.scratch or kernel.tables or kernel.uses_seed)
        if not is_plain or not isinstance(loop, Loop) or loop.kind not in _LANES or loop.sums:
            return None
        lets = tuple(statement for statement in bound if isinstance(statement, Let))
        if len(lets) < len(bound) or not all(isinstance(s, Let | Store) for s in loop.body):
            return None
        buffers = (*launch.inputs, *launch.outputs)
        if any(b.sizes is not None for b in buffers) or len({*buffers}) < len(buffers):
            return None
        stores = [s for s in loop.body if isinstance(s, Store)]
        in_order_ = all(s.offset == loop.variable for s in stores)
        once = len({s.array.name for s in stores}) == len(stores) == len(kernel.outputs)
        return _Map(launch, kernel, lets, loop) if in_order_ and once else None

    def _is_wanted(self, earlier: _Map, later: _Map) -> bool:
        """Return whether two maps may be one loop, which reads less then."""
        if (
            earlier.loop.extent != later.loop.extent
            or earlier.kernel.numerics != later.kernel.numerics
        ):
            return False
        written = {*earlier.launch.outputs}
        if {*earlier.launch.inputs, *written} & {*later.launch.outputs}:
            return False
        read = {*later.launch.inputs}
        shared = (read & written) | (read & {*earlier.launch.inputs})
        if not any(buffer.shape.elements >= _LEAST for buffer in shared):
            return False
        arrays = {*earlier.launch.inputs, *written, *read, *later.launch.outputs}
        if len(arrays) > _MOST_ARRAYS or _size(earlier) + _size(later) > _MOST_PARTS:
            return False
        # Of what the earlier one computes, the element at the same index only.
        buffers, own = later.buffers(), later.loop.variable
        return all(load.offset == own for load in later.loads() if buffers[load.array] in written)

    def _one(self, earlier: _Map, later: _Map) -> Launch:
        """Return the launch of both loops as one."""
        launches = earlier.launch, later.launch
        dead = {b for b in launches[0].outputs if self._is_dead(b, launches[1])}
        rest = [b for b in launches[1].inputs if b not in earlier.buffers().values()]
        inputs = (*launches[0].inputs, *rest)
        outputs = tuple(b for launch in launches for b in launch.outputs if b not in dead)
        self._uses.subtract({*buffers_of(launches[0])} & {*buffers_of(launches[1])})
        kernel = _one_kernel(earlier, later, inputs, outputs, len(self.kernels))
        self.kernels.append(kernel)
        joined = (*launches[0].origin.joined, launches[1].origin)
        origin = replace(launches[0].origin, joined=joined)
        return Launch(len(self.kernels) - 1, inputs, outputs, (), origin)

    def _is_dead(self, buffer: Buffer, reader: Launch) -> bool:
        """Return whether only one launch reads what another one writes to a buffer."""
        is_read = buffer in reader.inputs
        return is_read and buffer not in self._kept and self._uses[buffer] == 2


def _one_kernel(
    earlier: _Map,
    later: _Map,
    inputs: Sequence[Buffer],
    outputs: Sequence[Buffer],
    number: int,
) -> Kernel:
    """Return the kernel of both loops; ``number`` makes the names of variables different."""
    arrays = {**later.arrays(), **earlier.arrays()}
    arrays = {
        buffer: arrays[buffer]._replace(name=f"{letter}{n}")
        for letter, buffers in (("a", inputs), ("r", outputs))
        for n, buffer in enumerate(buffers)
    }
    index = earlier.loop.variable
    first = _Names({a: arrays.get(b) for b, a in earlier.arrays().items()}, index, "")
    second = _Names({a: arrays.get(b) for b, a in later.arrays().items()}, index, f"x{number}")
    second.own = later.loop.variable
    own, target = later.arrays(), earlier.buffers()
    body: list[Let | Store] = []
    stores: list[Store] = []
    results: dict[str, str] = {}  # names of what the first one stored, by those of the values
    for statement in earlier.loop.body:
        if isinstance(statement, Store):
            buffer = target[statement.array]
            kept = Variable(statement.value.type, f"w{number}x{len(body)}")
            results[kept.name] = statement.array.name
            body.append(Let(kept, first.renamed(statement.value)))
            if buffer in own:
                second.values[own[buffer]] = kept
            if buffer in outputs:
                stores.append(Store(arrays[buffer], index, kept))
        else:
            body.append(first.statement(statement))
    body += [second.statement(statement) for statement in later.loop.body]
    # A load after a store to an address that differs by a multiple of 4 KiB waits for it.
    lets = [s for s in body if isinstance(s, Let)]
    stores += [s for s in body if isinstance(s, Store)]
    bound = [*map(first.statement, earlier.bound), *map(second.statement, later.bound)]
    before = {let.variable for let in bound if isinstance(let, Let)}
    values, same = with_common_values([*bound, *lets, *stores])
    once = sum(isinstance(s, Let) and s.variable in before for s in values)  # these come first
    kind = max(earlier.loop.kind, later.loop.kind, key=len)
    return replace(
        earlier.kernel,
        inputs=tuple(arrays[buffer] for buffer in inputs),
        outputs=tuple(arrays[buffer] for buffer in outputs),
        # A kernel may be given an array that it does not read.
        body=without_dead_lets(
            (*values[:once], earlier.loop._replace(kind=kind, body=values[once:]))
        ),
        origins=_with_same(
            {
                **first.origins(earlier.kernel),
                **{kept: earlier.kernel.origins.get(name, ()) for kept, name in results.items()},
                **second.origins(later.kernel, 1 + len(earlier.launch.origin.joined)),
            },
            same,
        ),
    )


def _with_same(origins: Origins, same: Mapping[Expr, Variable]) -> Origins:
    """Return the instructions that names are for, those of names that are gone with them."""
    found = dict(origins)
    for gone, kept in same.items():
        assert isinstance(gone, Variable)
        both = (*found.get(kept.name, ()), *found.pop(gone.name, ()))
        found[kept.name] = tuple(dict.fromkeys(both))
    return found


class _Names:
    """Rename the arrays and variables of a kernel as those of another one.

    ``values`` has what its loads from some arrays are, at the index of the loop.
    """

    def __init__(self, arrays: Mapping[Array, Array | None], index: Variable, ending: str) -> None:
        self._arrays, self._index, self._ending = arrays, index, ending
        self.own = index
        self.values: dict[Array, Expr] = {}

    def statement(self, statement: Statement) -> Let | Store:
        """Rename a let or a store."""
        match statement:
            case Let(variable, value):
                named = variable._replace(name=variable.name + self._ending)
                return Let(named, self.renamed(value))
            case Store(array, offset, value):
                target = self._arrays[array]
                assert target is not None
                return Store(target, self.renamed(offset), self.renamed(value))
            case _:
                raise AssertionError(statement)

    def origins(self, kernel: Kernel, before: int = 0) -> Origins:
        """Return the instructions that the renamed names are for; ``before`` launches come first.

        An array that is not stored any more has no name.
        """
        arrays = {old.name: new.name if new else "" for old, new in self._arrays.items()}
        renamed = {name: arrays.get(name, name + self._ending) for name in kernel.origins}
        return {
            renamed[name]: tuple(one._replace(launch=one.launch + before) for one in own)
            for name, own in kernel.origins.items()
            if renamed[name]
        }

    def renamed(self, value: Expr) -> Expr:
        """Rename an expression."""
        match value:
            case Variable():
                if value == self.own:
                    return self._index
                return value._replace(name=value.name + self._ending)
            case Load(array, _) if array in self.values:
                return self.values[array]
            case Load(array, offset):
                target = self._arrays[array]
                assert target is not None
                return Load(target, self.renamed(offset))
            case _:
                return with_operands(value, self.renamed)


def _size(one: _Map) -> int:
    """Return the number of subexpressions of a map."""
    statements = (*one.bound, *one.loop.body)
    return sum(1 for s in statements for e in expressions(s) for _ in subexpressions(e))


def _conflicts(launch: Launch, other: Step) -> bool:
    """Return whether a launch and a step may not change places."""
    read, changed = read_and_changed(other)
    return bool({*launch.outputs} & (read | changed) or {*launch.inputs} & changed)
