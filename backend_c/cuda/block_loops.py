"""Run a loop of cheap trips as one kernel: one block of threads makes all trips.

Otherwise each step of a trip is a launch, which takes a GPU longer than a step on a few hundred
elements, and after each trip the host reads whether there is another one. Here the steps stand one
after the other in a loop over trips, on the same memory; the threads of the block share the loops
in them, with barriers where one reads what another wrote (:mod:`backend_c.cuda.cooperation`,
:mod:`backend_c.cuda.barriers`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from backend_c.cuda.cooperation import by_one_block
from backend_c.ir import index as ix
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Array,
    Assign,
    Barrier,
    Call,
    Computed,
    If,
    Kernel,
    Load,
    Loop,
    Mutable,
    Statement,
    Store,
    Variable,
    every,
    inside,
    parts,
)
from backend_c.ir.loop_rewriting import with_blocks
from backend_c.ir.renaming import Renaming
from backend_c.lower.loop_interchange import merged_numbers, merged_origin
from backend_c.lower.plan import (
    Buffer,
    Copy,
    Launch,
    Plan,
    Repeat,
    Step,
    buffers_of,
    in_order,
    read_and_changed,
    with_launched_kernels,
    with_steps,
)

_THREADS = 256  # of the block
# Operations of a thread in a trip, one after the other: some microseconds, as two launches take.
_MOST = 3000
_SUM = 200  # operations in the time in which a block combines what its threads have added up
_CALL = 500  # the same of a function of the runtime, about
_BY_BLOCKS = ("launches", "blocks", "warps", "threads")  # loops that a kernel wrote for blocks


def with_block_loops(plan: Plan) -> Plan:
    """Replace loops by kernels of one block: in a nest the outermost loop that is cheap enough."""
    kernels = [*plan.kernels]

    def change(steps: Sequence[Step]) -> tuple[Step, ...]:
        return tuple(map(changed, steps))

    def changed(step: Step) -> Step:
        if isinstance(step, Repeat) and _is_little(step, kernels):
            merged = _BlockLoop(step, kernels)
            kernel = merged.kernel()
            # Where the threads of a block cannot share the steps, one thread makes all trips: that
            # pays only if a trip is little work for it, too.
            if by_one_block(kernel) is not None or _cost(kernel.body, threads=1) <= _MOST:
                kernels.append(kernel)
                return merged.launch(len(kernels) - 1)
        return with_steps(step, change)

    steps = change(plan.steps)
    if len(kernels) == len(plan.kernels):
        return plan
    return with_launched_kernels(replace(plan, kernels=kernels, steps=steps))


def _is_little(repeat: Repeat, kernels: Sequence[Kernel]) -> bool:
    """Return whether one block can run a loop, and the cost of a trip is at most ``_MOST``."""
    cost, launches = 0, 0
    for _, step in in_order((repeat,)):
        match step:
            case Launch():
                launches += 1
                kernel = kernels[step.kernel]
                if kernel.uses_seed or kernel.tables or not all(map(_is_plain, every(kernel.body))):
                    return False
                cost += _cost(kernel.body)
            case Copy(_, target):
                cost += -(-target.shape.elements // _THREADS)
            case Repeat():
                pass
            case _:
                return False
        if any(buffer.sizes is not None or buffer.view is not None for buffer in buffers_of(step)):
            return False
    return launches > 0 and cost <= _MOST


def _is_plain(statement: Statement) -> bool:
    """Return whether a statement has no distribution over blocks or threads yet."""
    is_of_blocks = isinstance(statement, Loop) and statement.kind in _BY_BLOCKS
    return not (is_of_blocks or isinstance(statement, Barrier))


def _has_lanes(statements: Sequence[Statement]) -> bool:
    """Return whether statements contain a loop that threads can share."""
    return any(isinstance(one, Loop) and one.kind != "serial" for one in every(statements))


def _cost(statements: Sequence[Statement], threads: int = _THREADS) -> int:
    """Estimate the operations that one of ``threads`` threads does in sequence.

    Loops with unknown trip counts count once.
    """
    cost = 0
    for statement in statements:
        cost += sum(isinstance(part, Apply | Load) for part in parts([statement]))
        cost += _CALL * isinstance(statement, Call)
        if isinstance(statement, If):  # done rarely: sums whose rounding is in doubt
            continue
        body = _cost(inside(statement), threads)
        if isinstance(statement, Loop) and ix.value_of(statement.extent) is not None:
            turns = ix.bounds(statement.extent)[1]
            is_shared = statement.kind != "serial" and not _has_lanes(statement.body)
            body *= -(-turns // threads) if is_shared else turns
            body += _SUM * len(statement.sums) * is_shared
        cost += body
    return cost


class _BlockLoop:
    """Build the kernel of a loop; its inputs and outputs are the buffers that the loop names."""

    def __init__(self, repeat: Repeat, kernels: Sequence[Kernel]) -> None:
        self._repeat, self._kernels = repeat, kernels
        named = (buffer for _, step in in_order((repeat,)) for buffer in buffers_of(step))
        order = list(dict.fromkeys(named))
        _, changed = read_and_changed(repeat)
        self._inputs = tuple(buffer for buffer in order if buffer not in changed)
        self._outputs = tuple(buffer for buffer in order if buffer in changed)
        self._arrays = {b: _array(f"a{n}", b) for n, b in enumerate(self._inputs)} | {
            b: _array(f"r{n}", b)._replace(mutable=True) for n, b in enumerate(self._outputs)
        }
        self._numbers = itertools.count(1)
        steps = in_order((repeat,))
        self._launches = merged_numbers(step for _, step in steps if isinstance(step, Launch))
        self._origins: dict[str, tuple[Computed, ...]] = {}

    def kernel(self) -> Kernel:
        """Return the kernel."""
        body = tuple(self._trips(self._repeat))
        inputs = tuple(self._arrays[buffer] for buffer in self._inputs)
        outputs = tuple(self._arrays[buffer] for buffer in self._outputs)
        first = next(iter(self._launches))  # all have the same numerics
        numerics = self._kernels[first.kernel].numerics
        return Kernel(inputs, outputs, (), body, numerics, kind="trips", origins=self._origins)

    def launch(self, kernel: int) -> Launch:
        """Return the launch of kernel number ``kernel``."""
        origin = merged_origin(self._repeat, self._launches)
        return Launch(kernel, self._inputs, self._outputs, (), origin)

    def _trips(self, repeat: Repeat) -> Iterator[Statement]:
        """Yield a while loop: a counted loop that each trip extends if the predicate holds."""
        number = next(self._numbers)
        turns = Variable(INDEX, f"turns{number}", mutable=True)
        again = Apply("convert", (Load(self._arrays[repeat.predicate], ix.constant(0)),), INDEX)
        yield from self._steps(repeat.condition)
        yield Mutable(turns, again)
        body = [*self._steps(repeat.body), *self._steps(repeat.condition)]
        body.append(Assign(turns, ix.add(turns, again)))
        yield Loop(Variable(INDEX, f"trip{number}", 0), turns, "serial", tuple(body))

    def _steps(self, steps: Sequence[Step]) -> Iterator[Statement]:
        for step in steps:
            match step:
                case Launch():
                    yield from self._launched(step)
                case Copy(source, target):
                    yield from self._copied(source, target)
                case Repeat():
                    yield from self._trips(step)
                case _:
                    raise AssertionError(step)

    def _launched(self, launch: Launch) -> Iterator[Statement]:
        """Inline the body of a launch's kernel, on the loop's arrays."""
        kernel, ending = self._kernels[launch.kernel], f"k{next(self._numbers)}"
        own = (*kernel.inputs, *kernel.outputs, *kernel.scratch)
        buffers = (*launch.inputs, *launch.outputs, *launch.scratch)
        there = {a.name: self._arrays[b] for a, b in zip(own, buffers, strict=True)}

        def array(one: Array) -> Array:
            return there.get(one.name) or one._replace(name=one.name + ending)

        names = Renaming(array, lambda one, offset: Load(array(one), offset), ending)
        self._origins |= names.origins(kernel, self._launches[launch])
        yield from map(_in_block, names.block(kernel.body))

    def _copied(self, source: Buffer, target: Buffer) -> Iterator[Statement]:
        """Yield the loop that copies an array."""
        place = Variable(INDEX, f"copied{next(self._numbers)}", 0, target.shape.elements - 1)
        load = Load(self._arrays[source], place)
        store = Store(self._arrays[target], place, load)
        yield Loop(place, ix.constant(target.shape.elements), "lanes", (store,))


def _array(name: str, buffer: Buffer) -> Array:
    return Array(name, buffer.shape.element_type, buffer.shape.elements)


def _in_block(statement: Statement) -> Statement:
    """Restrict a statement's loops over all threads to the threads of a block."""
    statement = with_blocks(statement, lambda block: tuple(map(_in_block, block)))
    if isinstance(statement, Loop) and statement.kind == "parallel lanes":
        return statement._replace(kind="lanes")
    return statement
