"""Compute a result in bands of rows by a ``while`` loop, so that its producers are never in memory
as a whole (patch-based inference: Lin et al., "MCUNetV2", 2021).

    y = f32[1,32,32,8] relu(convolution(relu(convolution(x, k)), l))

becomes a loop whose body computes a band of rows of ``y`` from the rows of ``x`` under their
windows, and stores it by a ``dynamic-update-slice``. Rows that two bands both need (the halo) are
computed twice. The windows' padding becomes explicit, as only the first and last bands have any:
operands are padded or masked with a neutral value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from hlo.attributes import Attribute, ConvolutionDimensions, Window
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.passes.bands.regions import WINDOWED, Region, Regions, Rows
from hlo.passes.dead_code import dead_code
from hlo.passes.rewriting import Names, Rebuilt, array
from hlo.types import PRED, S32, U32, ArrayShape, ElementType, Shape, TupleShape

_COUNTER, _RESULT, _OTHERS = 0, 1, 2  # elements of the loop's state


def in_bands(module: Module, regions: Regions, region: Region) -> Module:
    """Replace a region of a module's entry by a loop over bands of its result's rows."""
    body = _Body(regions, region)
    body.write()
    state = TupleShape((ArrayShape(S32), region.result.shape, *body.outside_shapes))
    names = Names(computation.name for computation in module.computations)
    loop = (
        _condition(names.fresh("has_band"), state, trips(region)),
        body.done(names.fresh("band"), state),
    )
    entry = _with_loop(module.entry, region, body.outside, loop)
    computations = [c for c in module.computations if c.name != module.entry_name]
    return dead_code(replace(module, computations=(*computations, *loop, entry)))


def trips(region: Region) -> int:
    """Return the trip count, ceil(rows / rows per band). If these do not divide evenly, the last
    band is shifted to end with the result, and overlaps the one before."""
    rows = array(region.result.shape).dims[region.rows.dimension]
    return -(-rows // region.rows.count)


class _Writer:
    """Append instructions with fresh names to a computation under construction."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self._names = Names(())

    def add(
        self,
        stem: str,
        shape: Shape,
        opcode: str,
        operands: tuple[str, ...] = (),
        attributes: Mapping[str, Attribute] | None = None,
    ) -> str:
        """Append an instruction; return its name."""
        name = self._names.fresh(stem)
        self.instructions.append(Instruction(name, shape, opcode, operands, attributes or {}))
        return name

    def number(self, value: complex, element_type: ElementType = S32) -> str:
        """Append a scalar constant (s32 by default); return its name."""
        shape = ArrayShape(element_type)
        literal = Literal(shape, np.asarray(value).astype(element_type.numpy))
        return self.add("number", shape, "constant", (), {"literal": literal})

    def splat(self, scalar: str, shape: ArrayShape) -> str:
        """Append a broadcast of a scalar to a shape; return its name."""
        return self.add("each", shape, "broadcast", (scalar,), {"dimensions": ()})

    def element(self, state: str, index: int, shape: Shape) -> str:
        """Append a get-tuple-element; return its name."""
        return self.add("element", shape, "get-tuple-element", (state,), {"index": index})


class _Body(_Writer):
    """Build the loop's body: state (counter, result, outside values…) to the next trip's state.

    ``outside`` names the values in memory that the region reads: elements of the state, in this
    order behind counter and result, which the body hands on unchanged.
    """

    def __init__(self, regions: Regions, region: Region) -> None:
        super().__init__()
        self._regions, self._region = regions, region
        self._state = self._names.fresh("state")
        self.outside: list[str] = []
        self._elements: dict[str, str] = {}  # of the state, by the name outside
        self._known: dict[tuple[str, Rows | None], str] = {}  # what is written, by what it is of
        self._made: dict[tuple[str, Rows], bool] = {}  # whether rows can be recomputed
        rows = array(region.result.shape).dims[region.rows.dimension]
        self._last = rows - region.rows.count  # where the last band begins
        self._counter = self.element(self._state, _COUNTER, ArrayShape(S32))
        self._start = self._first_row()

    @property
    def outside_shapes(self) -> tuple[Shape, ...]:
        """Return the shapes of the ``outside`` values."""
        return tuple(self._regions.by_name[name].shape for name in self.outside)

    def write(self) -> None:
        """Append the rows of every member of the region, producers first."""
        for name, rows in self._region.members.items():
            self._known[name, rows] = self._on_rows(self._regions.by_name[name], rows)

    def done(self, name: str, state: TupleShape) -> Computation:
        """Return the body, whose root is the next state: counter + 1, the result with this band
        stored, and the outside values."""
        result, rows = self._region.result, self._region.rows
        old = self.element(self._state, _RESULT, result.shape)
        starts = self._starts(array(result.shape).rank, rows.dimension, self._start)
        operands = (old, self._known[result.name, rows], *starts)
        new = self.add("result", result.shape, "dynamic-update-slice", operands)
        next_ = self.add("next", ArrayShape(S32), "add", (self._counter, self.number(1)))
        kept = [self._element_of(outside) for outside in self.outside]
        root = self.add("root", state, "tuple", (next_, new, *kept))
        parameter = Instruction(self._state, state, "parameter", (), {"parameter_number": 0})
        return Computation(name, (parameter, *self.instructions), root)

    def _first_row(self) -> str:
        """Append the first row of the band: counter * rows per band, clamped to the last one."""
        shape, count = ArrayShape(S32), self.number(self._region.rows.count)
        start = self.add("start", shape, "multiply", (self._counter, count))
        # Only with a remainder does the last band have to be shifted back into the result.
        if (self._last + self._region.rows.count) % self._region.rows.count:
            start = self.add("start", shape, "minimum", (start, self.number(self._last)))
        return start

    def _on_rows(self, instruction: Instruction, rows: Rows) -> str:
        """Append an instruction restricted to some rows of its result; return its name."""
        needs = self._regions.operands(instruction, rows)
        assert needs is not None, instruction
        operands = tuple(
            self._whole(name) if need is None else self._operand(instruction, name, need)
            for name, need in zip(instruction.operands, needs, strict=True)
        )
        return self._copied(instruction, _with_rows(instruction.shape, rows), operands, rows)

    def _copied(
        self,
        instruction: Instruction,
        shape: ArrayShape,
        operands: tuple[str, ...],
        rows: Rows | None = None,
    ) -> str:
        """Append a copy of an instruction with another shape and operands; return its name. With
        ``rows``, its window loses its padding along them: the operand has it explicitly."""
        attributes = dict(instruction.attributes)
        if rows is not None and instruction.opcode in WINDOWED:
            attributes["window"] = _without_padding(instruction, rows.dimension)
        name = self.add(instruction.name, shape, instruction.opcode, operands, attributes)
        written = self.instructions[-1]._replace(annotations=instruction.annotations)
        self.instructions[-1] = written
        return name

    def _whole(self, name: str) -> str:
        """Return the name of a whole value in the body: recomputed if it is free, else read from
        the state."""
        if name not in self._regions.free:
            return self._element_of(name)
        if (name, None) not in self._known:
            instruction = self._regions.by_name[name]
            operands = tuple(map(self._whole, instruction.operands))
            self._known[name, None] = self._copied(instruction, array(instruction.shape), operands)
        return self._known[name, None]

    def _operand(self, user: Instruction, name: str, need: Rows) -> str:
        """Return the name of the rows that ``user`` reads of an operand: cut from a member's band,
        recomputed if it is free, else loaded; rows outside the operand hold the user's padding."""
        if name in self._region.members:
            return self._masked(user, name, need)
        if name in self._regions.free and self._is_made(name, need):
            if (name, need) not in self._known:
                self._known[name, need] = self._on_rows(self._regions.by_name[name], need)
            return self._known[name, need]
        return self._loaded(user, name, need)

    def _is_made(self, name: str, rows: Rows) -> bool:
        """Return whether the rows of a free value can be recomputed (all producers have rules).

        Asked once for each value and rows: a chain of add(y, y) has two paths for each link.
        """
        if (name, rows) not in self._made:
            instruction = self._regions.by_name[name]
            needs = self._regions.operands(instruction, rows)
            self._made[name, rows] = needs is not None and all(
                need is None or self._is_made(operand, need)
                for operand, need in zip(instruction.operands, needs, strict=True)
            )
        return self._made[name, rows]

    def _loaded(self, user: Instruction, name: str, need: Rows) -> str:
        """Append a dynamic-slice of rows of an array in memory, padded first if the slice can leave
        it (where the start would be clamped)."""
        shape = array(self._regions.by_name[name].shape)
        low, high = need.outside(shape.dims[need.dimension], self._last)
        source = self._element_of(name)
        if low or high:
            sides = [(0, 0, 0)] * shape.rank
            sides[need.dimension] = (low, high, 0)
            longer = _with_size(shape, need.dimension, shape.dims[need.dimension] + low + high)
            operands = source, self._padding(user, shape)
            source = self.add("padded", longer, "pad", operands, {"padding": tuple(sides)})
        begin = self._row(need.step, need.first + low)
        starts = self._starts(shape.rank, need.dimension, begin)
        part = _with_rows(shape, need)
        sizes: dict[str, Attribute] = {"dynamic_slice_sizes": part.dims}
        return self.add("rows", part, "dynamic-slice", (source, *starts), sizes)

    def _masked(self, user: Instruction, name: str, need: Rows) -> str:
        """Return the rows of a member that ``user`` reads: a slice of the member's band, with a
        select of padding where these rows lie outside of the member's array."""
        whole = array(self._regions.by_name[name].shape)
        shape, rows = _with_rows(whole, need), self._region.members[name]
        band = self._known[name, rows]
        if need != rows:
            window = [(0, size, 1) for size in shape.dims]
            first = need.first - rows.first
            window[need.dimension] = (first, first + need.count, 1)
            band = self.add("part", shape, "slice", (band,), {"slice": tuple(window)})
        size = whole.dims[need.dimension]
        if user.opcode not in WINDOWED or not any(need.outside(size, self._last)):
            return band
        # One comparison: a row before the first is a large number without a sign.
        rows_shape = ArrayShape(U32, shape.dims)
        begin = self.add("begin", ArrayShape(U32), "convert", (self._row(need.step, need.first),))
        steps = {"iota_dimension": need.dimension}
        row = self.add("row", rows_shape, "iota", (), steps)
        row = self.add("row", rows_shape, "add", (row, self.splat(begin, rows_shape)))
        end = self.splat(self.number(size, U32), rows_shape)
        is_row = self.add(
            "is_row", ArrayShape(PRED, shape.dims), "compare", (row, end), {"direction": "LT"}
        )
        padding = self.splat(self._padding(user, shape), shape)
        return self.add("padded", shape, "select", (is_row, band, padding))

    def _padding(self, user: Instruction, shape: ArrayShape) -> str:
        """Return the neutral scalar that ``user`` may read in padding rows; 0 without a window."""
        padding = self._regions.padding(user) if user.opcode in WINDOWED else None
        if isinstance(padding, str):
            return self._whole(padding)
        return self.number(0.0 if padding is None else padding, shape.element_type)

    def _row(self, step: int, first: int) -> str:
        """Append the row ``step * start + first`` of the band; return its name."""
        shape, row = ArrayShape(S32), self._start
        if step != 1:
            row = self.add("row", shape, "multiply", (row, self.number(step)))
        if first:
            row = self.add("row", shape, "add", (row, self.number(first)))
        return row

    def _starts(self, rank: int, dimension: int, row: str) -> tuple[str, ...]:
        """Return start indices of a slice: ``row`` along one dimension, 0 along the others."""
        zero = self.number(0)
        return tuple(row if d == dimension else zero for d in range(rank))

    def _element_of(self, name: str) -> str:
        """Return the state's element of an outside value; give the state one if it has none."""
        if name not in self._elements:
            index, shape = _OTHERS + len(self.outside), self._regions.by_name[name].shape
            self.outside.append(name)
            self._elements[name] = self.element(self._state, index, shape)
        return self._elements[name]


def _condition(name: str, state: TupleShape, bands: int) -> Computation:
    """Return the loop's condition: counter < number of bands."""
    writer = _Writer()
    counter = writer.element("state", _COUNTER, ArrayShape(S32))
    operands = counter, writer.number(bands)
    root = writer.add("root", ArrayShape(PRED), "compare", operands, {"direction": "LT"})
    parameter = Instruction("state", state, "parameter", (), {"parameter_number": 0})
    return Computation(name, (parameter, *writer.instructions), root)


def _with_loop(
    entry: Computation, region: Region, outside: list[str], loop: tuple[Computation, Computation]
) -> Computation:
    """Replace a region's result in the entry by the ``while`` and a get-tuple-element of it."""
    rebuilt = Rebuilt(entry)
    result, (condition, body) = region.result, loop
    shape = array(result.shape)

    def add(stem: str, kind: Shape, opcode: str, *operands: str, **attributes: Attribute) -> str:
        name = rebuilt.names.fresh(f"{result.name}.{stem}")
        return rebuilt.add(Instruction(name, kind, opcode, operands, attributes))

    for instruction in entry.instructions:
        if instruction.name != result.name:
            rebuilt.add(instruction)
            continue
        first, zero = (
            Literal(ArrayShape(kind), np.zeros((), kind.numpy))
            for kind in (S32, shape.element_type)
        )
        begin = add("band", first.shape, "constant", literal=first)
        none = add("zero", zero.shape, "constant", literal=zero)
        # Any value would do: the bands write every row.
        empty = add("rows", shape, "broadcast", none, dimensions=())
        kinds = [rebuilt.definitions[name].shape for name in outside]
        state = TupleShape((first.shape, shape, *kinds))
        init = add("init", state, "tuple", begin, empty, *outside)
        done = add("bands", state, "while", init, condition=condition.name, body=body.name)
        read: dict[str, Attribute] = {"index": _RESULT}
        rebuilt.add(result._replace(opcode="get-tuple-element", operands=(done,), attributes=read))
    return rebuilt.done()


def _with_rows(shape: Shape, rows: Rows) -> ArrayShape:
    """Return an array's shape restricted to a range of rows."""
    return _with_size(array(shape), rows.dimension, rows.count)


def _with_size(shape: ArrayShape, dimension: int, size: int) -> ArrayShape:
    """Return a shape with another size of one dimension."""
    dims = (*shape.dims[:dimension], size, *shape.dims[dimension + 1 :])
    return ArrayShape(shape.element_type, dims)


def _without_padding(instruction: Instruction, dimension: int) -> Window:
    """Return an instruction's window with no padding along a dimension of the result."""
    window, labels = (instruction.attributes.get(a) for a in ("window", "dim_labels"))
    assert isinstance(window, Window)
    number = dimension
    if isinstance(labels, ConvolutionDimensions):
        number = labels.output_spatial.index(dimension)
    changed = list(window.dimensions)
    changed[number] = replace(changed[number], padding_low=0, padding_high=0)
    return Window(tuple(changed))
