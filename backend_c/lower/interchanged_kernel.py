"""Emit the kernel of an interchanged loop: blocks of elements outside, trips inside.

A block's elements of the state are in arrays on the stack of its thread, which stay in registers
or in the first level of the cache. State that all elements share (counters, keys) is computed anew
by each block. Whether the interchange is legal is decided in
:mod:`backend_c.lower.loop_interchange`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from backend_c.ir import index as ix
from backend_c.ir.common_values import with_common_values
from backend_c.ir.dead_lets import without_dead_lets
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Array,
    Assign,
    Computed,
    Expr,
    Kernel,
    Let,
    Load,
    LocalArray,
    Loop,
    Mutable,
    Statement,
    Store,
    Variable,
    parts,
)
from backend_c.ir.loop_rewriting import with_blocks
from backend_c.ir.names import with_same
from backend_c.ir.renaming import Renaming
from backend_c.ir.settings import Numerics
from backend_c.ir.value_ranges import COMPUTED_IN_F32, SHORTER
from backend_c.lower.maps import Map, buffers_by_array, map_of
from backend_c.lower.plan import Buffer, Copy, Launch, Repeat, Step

_MOST_PARTS = 600  # subexpressions of a loop in lanes: what fits the registers, and compiles soon


@dataclass(frozen=True, slots=True)
class Interchange:
    """Hold a loop that is to become one kernel, with its buffers by the part that they play.

    ``own`` buffers have one element for each lane of a block, ``shared`` ones are small, and
    complete in each block. ``inputs`` are buffers that no trip changes, and ``shared`` ones with a
    value before the first trip; ``outputs`` are ``own`` ones with a value before it, or that are
    read after the loop. ``numbers`` are those of the launches among all that are merged
    (:class:`Computed`).
    """

    repeat: Repeat
    kernels: Sequence[Kernel]
    numbers: Mapping[Launch, int]
    elements: int
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    own: frozenset[Buffer]
    shared: frozenset[Buffer]


def interchanged_kernel(given: Interchange, block_size: int, *, is_parallel: bool) -> Kernel:
    """Build the kernel: a loop over blocks of ``block_size`` elements, then one for the rest."""
    inputs = [_array(f"a{n}", buffer) for n, buffer in enumerate(given.inputs)]
    outputs = [_array(f"r{n}", b)._replace(mutable=True) for n, b in enumerate(given.outputs)]
    arrays = dict(zip((*given.inputs, *given.outputs), (*inputs, *outputs), strict=True))
    blocks, rest = divmod(given.elements, block_size)
    block = Variable(INDEX, "block", 0, max(blocks - 1, 0))
    kind = "parallel" if is_parallel else "serial"
    start = ix.multiply(block, block_size) if blocks > 1 else ix.constant(0)
    whole = _Block(given, arrays, start, block_size)
    body: list[Statement] = []
    if blocks > 1:
        body.append(Loop(block, ix.constant(blocks), kind, whole.written()))
    elif blocks:
        body += whole.written()
    written = [whole]
    if rest:
        written.append(_Block(given, arrays, ix.constant(blocks * block_size), rest, "rest"))
        body += written[1].written()
    origins: dict[str, tuple[Computed, ...]] = {}
    for one in written:
        origins |= with_same(one.origins, one.same)
    numerics = given.kernels[0].numerics
    arrays_ = tuple(inputs), tuple(outputs), ()
    return Kernel(*arrays_, tuple(body), numerics, kind="trips", origins=origins)


def _array(name: str, buffer: Buffer) -> Array:
    return Array(name, buffer.shape.element_type, buffer.shape.elements)


class _Block:
    """Write the code of one block of elements from ``start`` on: trips, each with loops over lanes.

    ``ending`` is the suffix of this block's variable names, unique among the kernel's blocks.
    """

    def __init__(
        self,
        given: Interchange,
        arrays: dict[Buffer, Array],
        start: Expr,
        lanes: int,
        ending: str = "",
    ) -> None:
        self._given, self._start, self._lanes, self._ending = given, start, lanes, ending
        self._arrays = arrays
        self._lane = Variable(INDEX, f"lane{ending}", 0, lanes - 1)
        # A block of all elements has them at its lanes.
        is_all = lanes == given.elements
        name = f"place{ending}"
        self._place = self._lane if is_all else Variable(INDEX, name, 0, given.elements - 1)
        self._held: dict[Buffer, Array] = {}
        self._numbers = itertools.count(1)
        self._written: list[Statement] = []
        self._segment = _Segment()
        self.origins: dict[str, tuple[Computed, ...]] = {}  # what names are for
        self.same: dict[str, Variable] = {}  # names that are gone

    def written(self) -> tuple[Statement, ...]:
        """Return all statements: loads of the initial state, the loop over trips, the stores."""
        given = self._given
        for buffer in given.outputs:
            self._set(buffer, self._bound(Load(self._arrays[buffer], self._place)))
        self._flush()
        for buffer in given.inputs:
            if buffer in given.shared:
                self._copy_shared(self._arrays[buffer], buffer)
        self._repeat(given.repeat)
        for buffer in given.outputs:
            value = self._value(buffer)
            self._segment.stores.append(Store(self._arrays[buffer], self._place, value))
        self._flush()
        return without_dead_lets([*map(LocalArray, self._held.values()), *self._written])

    def _array_of(self, buffer: Buffer) -> Array:
        """Return the array that holds a buffer: a local one if the loop changes it."""
        if buffer in self._given.own or buffer in self._given.shared:
            elements = self._lanes if buffer in self._given.own else buffer.shape.elements
            array = _array(f"t{len(self._held)}{self._ending}", buffer)._replace(elements=elements)
            return self._held.setdefault(
                buffer, array._replace(mutable=True, is_local=True, is_wide=True)
            )
        return self._arrays[buffer]

    # Steps

    def _steps(self, steps: Sequence[Step]) -> None:
        """Write steps in order, and flush the loop over lanes that the last of them left open."""
        for step in steps:
            match step:
                case Repeat():
                    self._repeat(step)
                case Copy(source, target) if target in self._given.shared:
                    self._copy_shared(self._array_of(source), target)
                case Copy(source, target):
                    self._set(target, self._value(source))
                case Launch():
                    self._launch(step)
                case _:
                    raise AssertionError(step)
        self._flush()

    def _repeat(self, repeat: Repeat) -> None:
        """Write a while loop: a counted loop that each trip extends if the predicate holds."""
        number = next(self._numbers)
        # Loop IR has counted loops only: the bound is a variable that grows while the loop runs.
        again = Load(self._array_of(repeat.predicate), ix.constant(0))
        one_if = Apply("convert", (again,), INDEX)
        turns = Variable(INDEX, f"turns{number}{self._ending}", mutable=True)
        self._flush()
        self._steps(repeat.condition)
        self._written.append(Mutable(turns, one_if))
        with self._inside() as body:
            self._steps(repeat.body)
            self._steps(repeat.condition)
            body.append(Assign(turns, ix.add(turns, one_if)))
        trip = Variable(INDEX, f"trip{number}{self._ending}", 0)
        self._written.append(Loop(trip, turns, "serial", tuple(body)))

    @contextmanager
    def _inside(self) -> Iterator[list[Statement]]:
        """Redirect statements that are written inside to a nested list."""
        outside, self._written = self._written, []
        yield self._written
        self._written = outside

    def _launch(self, launch: Launch) -> None:
        kernel = self._given.kernels[launch.kernel]
        if any(buffer in self._given.shared for buffer in launch.outputs):
            self._launch_shared(launch, kernel)
            return
        one = map_of(launch, kernel)
        assert one is not None
        if self._segment.parts + one.size() > _MOST_PARTS:
            self._flush()
        self._write_map(one)

    def _launch_shared(self, launch: Launch, kernel: Kernel) -> None:
        """Inline a kernel that computes shared state; one thread runs its loops serially."""
        if self._segment.read & {*launch.outputs}:
            self._flush()
        arrays = buffers_by_array(launch, kernel)
        names = Renaming(
            lambda array: self._array_of(arrays[array]),
            lambda array, offset: Load(self._array_of(arrays[array]), offset),
            self._fresh_ending(),
        )
        self._written += map(_by_one_thread, names.block(kernel.body))
        self.origins |= names.origins(kernel, self._given.numbers[launch])

    def _copy_shared(self, source: Array, target: Buffer) -> None:
        """Write a copy of shared state, element by element, unrolled."""
        if target in self._segment.read:
            self._flush()
        into = self._array_of(target)
        for number in range(target.shape.elements):
            place = ix.constant(number)
            self._written.append(Store(into, place, Load(source, place)))

    def _write_map(self, one: Map) -> None:
        """Inline the loop body of a map into the open loop over lanes."""
        buffers, segment = one.buffers(), self._segment
        known: dict[Load, Variable] = {}

        def load(array: Array, offset: Expr) -> Expr:
            buffer = buffers[array]
            if buffer in self._given.own:
                return self._value(buffer)
            loaded = Load(self._array_of(buffer), offset)
            if buffer not in self._given.shared:
                return loaded
            if ix.value_of(offset) is None:
                segment.read.add(buffer)
                return loaded
            # Before the lanes: it may be another one after a later step.
            if loaded not in known:
                known[loaded] = Variable(loaded.type, f"u{next(self._numbers)}{self._ending}")
                self._written.append(Let(known[loaded], loaded))
            return known[loaded]

        place = {one.loop.variable: self._place}
        target = {array: self._array_of(b) for array, b in buffers.items()}
        names = Renaming(target.get, load, self._fresh_ending(), place)
        found = names.origins(one.kernel, self._given.numbers[one.launch])
        self.origins |= found
        self._written += names.block(one.bound)
        for statement in one.loop.body:
            renamed = names.statement(statement)
            if isinstance(statement, Store) and isinstance(renamed, Store):
                value = self._bound(renamed.value)
                self._set(buffers[statement.array], value)
                self.origins[value.name] = found.get(renamed.array.name, ())
            else:
                assert isinstance(renamed, Let)
                segment.lets.append(renamed)
        segment.parts += one.size()

    def _fresh_ending(self) -> str:
        return f"k{next(self._numbers)}{self._ending}"

    # Values of a lane

    def _bound(self, value: Expr) -> Variable:
        """Bind a value to a new variable in the open loop over lanes."""
        variable = Variable(value.type, f"w{next(self._numbers)}{self._ending}")
        self._segment.lets.append(Let(variable, value))
        return variable

    def _value(self, buffer: Buffer) -> Expr:
        """Return the current lane's element of a buffer: a register if it is known, else a load."""
        values = self._segment.values
        if buffer not in values:
            is_own = buffer in self._given.own
            place = self._lane if is_own else self._place
            values[buffer] = self._bound(Load(self._array_of(buffer), place))
        return values[buffer]

    def _set(self, buffer: Buffer, value: Expr) -> None:
        """Assign a lane's element of a buffer; it is stored when the loop over lanes is flushed."""
        self._segment.values[buffer] = value
        self._segment.changed[buffer] = None

    def _flush(self) -> None:
        """Close the open loop over lanes: write its values and the stores of all it changed."""
        segment, self._segment = self._segment, _Segment()
        loaded = {let.value.array for let in segment.lets if isinstance(let.value, Load)}
        is_fast = self._given.kernels[0].numerics is Numerics.FAST
        is_run_twice = is_fast and any(map(_is_run_twice, segment.lets))
        kept: list[Store] = []
        copied: list[Store] = []
        for buffer in segment.changed:
            into = array = self._array_of(buffer)
            if is_run_twice and array in loaded:
                # The second version of a block would read what the first one stored: new values
                # wait in an array of their own.
                into = array._replace(name=f"{array.name}n")
                self._written.append(LocalArray(into))
                copied.append(Store(array, self._lane, Load(into, self._lane)))
            kept.append(Store(into, self._lane, segment.values[buffer]))
        body: list[Let | Store] = [*segment.lets, *segment.stores, *kept]
        if self._place != self._lane:
            body.insert(0, Let(self._place, ix.add(self._start, self._lane)))
        values, same = with_common_values(body)
        self.same |= same
        self._loop(values)
        self._loop(copied)

    def _loop(self, body: Sequence[Let | Store]) -> None:
        loop = Loop(self._lane, ix.constant(self._lanes), "lanes", tuple(body))
        # By itself, as other loops have values of the same names.
        self._written += without_dead_lets([loop])


class _Segment:
    """Hold the body of the loop over lanes that is open.

    ``values`` maps buffers to a lane's element in a register; those in ``changed`` are not stored
    yet. ``read`` has the shared buffers that it reads at computed offsets, which must not change
    before it is closed. ``parts`` counts subexpressions.
    """

    def __init__(self) -> None:
        self.lets: list[Let] = []
        self.stores: list[Store] = []
        self.values: dict[Buffer, Expr] = {}
        self.changed: dict[Buffer, None] = {}
        self.read: set[Buffer] = set()
        self.parts = 0


def _by_one_thread(statement: Statement) -> Statement:
    """Make the loops of a statement serial, or lanes of one thread."""
    statement = with_blocks(statement, lambda block: tuple(map(_by_one_thread, block)))
    if not isinstance(statement, Loop):
        return statement
    return statement._replace(kind="lanes" if "lanes" in statement.kind else "serial")


def _is_run_twice(let: Let) -> bool:
    """Return whether a let calls a function that has two versions.

    :mod:`backend_c.render.block_versions` requires that such a loop stores to no array that it
    loads.
    """
    return any(
        isinstance(p, Apply) and p.operation in SHORTER and p.type in COMPUTED_IN_F32
        for p in parts([let])
    )
