"""Compute which rows of its operands a band (a block of rows) of a result depends on.

Rows of a value are the indices along one dimension. Convolutions and window reductions read the
operand rows under their windows (the halo included); other instructions read the same rows of an
operand, or all of it. These dependences are composed backwards from a result through its producers,
so the rows of every value that a band needs are an affine function of the band's first row:
``count`` rows from ``step * start + first``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from hlo.attributes import ConvolutionDimensions, Window, WindowDimension
from hlo.module import Instruction, Module
from hlo.opcodes import BITWISE, ELEMENTWISE, EXTREME, having, of_family
from hlo.passes.rewriting import array, constant_value, integer, integers
from hlo.passes.updates_in_place import is_static_array
from hlo.types import ArrayShape
from hlo.walk import monoid

_ELEMENTWISE = of_family(ELEMENTWISE)
WINDOWED = frozenset(("convolution", "reduce-window"))  # what takes more rows than it gives
_FREE = frozenset(("constant", "iota", "broadcast"))
# Of x and x these give x.
_IDEMPOTENT = having(EXTREME) | (having(BITWISE) & {"and", "or"})
_NO_ZERO = frozenset(("f8e8m0fnu",))


@dataclass(frozen=True, slots=True)
class Rows:
    """Represent a range of rows of a value as a function of the band: the ``count`` rows along
    ``dimension`` from ``step * start + first``, where the band of the result begins at row
    ``start``. ``first`` may be negative: rows before row 0 are padding."""

    dimension: int
    step: int
    first: int
    count: int

    def joined(self, other: Rows) -> Rows | None:
        """Return the smallest range that covers both; None if their distance depends on the band
        (another dimension or step)."""
        if (self.dimension, self.step) != (other.dimension, other.step):
            return None
        first = min(self.first, other.first)
        end = max(self.first + self.count, other.first + other.count)
        return replace(self, first=first, count=end - first)

    def outside(self, rows: int, last: int) -> tuple[int, int]:
        """Return how many of these rows lie before row 0, and behind the last of a value's ``rows``
        rows: the maximum over the bands that begin at result rows 0 to ``last``."""
        highest = self.step * last + self.first + self.count
        return max(0, -self.first), max(0, highest - rows)


Operand = Rows | None  # the rows of an operand that are needed; None is all of it


@dataclass(frozen=True, slots=True)
class Region:
    """Hold the subgraph of a result and those of its producers that can be computed band by band.

    ``members`` maps the names of these instructions, in module order and with the result last, to
    the rows of each that a band needs. All other values that the members read are whole arrays in
    memory, or free: constants, iotas, broadcasts and their elementwise combinations, recomputed in
    each band. ``windowed`` counts the convolutions and window reductions among the members.
    """

    members: Mapping[str, Rows]
    result: Instruction
    windowed: int

    @property
    def rows(self) -> Rows:
        """Return the rows of the result that one band computes."""
        return self.members[self.result.name]


class Regions:
    """Build the regions of results in a module's entry computation, from its use-def graph."""

    def __init__(self, module: Module) -> None:
        computation = module.entry
        self._module = module
        self.by_name = {i.name: i for i in computation.instructions}
        self._order = list(computation.instructions)
        self._position = {i.name: n for n, i in enumerate(self._order)}
        self._users: dict[str, set[str]] = {i.name: set() for i in self._order}
        for instruction in self._order:
            for name in instruction.operands:
                self._users[name].add(instruction.name)
        # Names of values that are made of constants alone.
        self.free: set[str] = set()
        for i in self._order:
            is_made = i.opcode in _FREE or i.opcode in _ELEMENTWISE
            if is_made and self.free.issuperset(i.operands):
                self.free.add(i.name)

    def users(self, name: str) -> set[str]:
        """Return the names of the instructions that read a value."""
        return self._users[name]

    def region(self, result: Instruction, dimension: int, count: int) -> Region | None:
        """Build the region for bands of ``count`` rows of an instruction's result; None if the
        result itself cannot be computed by rows. Producers join whose users are all members."""
        wanted: dict[str, list[Operand]] = {result.name: [Rows(dimension, 1, 0, count)]}
        members: dict[str, Rows] = {}
        for instruction in reversed(self._order[: self._position[result.name] + 1]):
            name = instruction.name
            rows = _union(wanted.get(name, []))
            is_inside = name == result.name or self._users[name] <= members.keys()
            if rows is None or name in self.free or not is_inside:
                continue
            needs = self.operands(instruction, rows)
            if needs is None or not self._keeps_value(instruction, rows):
                continue
            members[name] = rows
            for operand, need in zip(instruction.operands, needs, strict=True):
                wanted.setdefault(operand, []).append(need)
        if result.name not in members:
            return None
        windowed = sum(self.by_name[name].opcode in WINDOWED for name in members)
        return Region(dict(reversed(members.items())), result, windowed)

    def operands(self, instruction: Instruction, rows: Rows) -> tuple[Operand, ...] | None:
        """Return, for each operand, the rows that given rows of an instruction read (None: all of
        it); None instead of the tuple if the instruction has no rule or a shape is not static."""
        opcode = instruction.opcode
        rule = _RULES.get(opcode, _elementwise if opcode in _ELEMENTWISE else None)
        shapes = [self.by_name[name].shape for name in instruction.operands]
        if rule is None or not all(map(is_static_array, (instruction.shape, *shapes))):
            return None
        return rule(instruction, [array(shape) for shape in shapes], rows)

    def padding(self, instruction: Instruction) -> complex | str | None:
        """Return the value that may be stored in an operand's padding rows without changing a bit
        of the result: a number, or the name of a scalar instruction; None if there is none.

        Padding takes no part in a window's sum, so a stored value must be neutral: 0 as the input
        of a convolution whose kernel is finite (0 * inf is NaN), -0 in a sum (+0 would change a sum
        of -0), and the init of an idempotent reduction, of which it is an operand already.
        """
        element_type = array(self.by_name[instruction.operands[0]].shape).element_type
        has_zero = element_type.name not in _NO_ZERO
        if instruction.opcode == "convolution":
            kernel = self.by_name[instruction.operands[1]]
            is_finite = array(kernel.shape).element_type.is_integer or _is_finite(kernel)
            return 0.0 if has_zero and is_finite else None
        combiner = monoid(self._module.computation(str(instruction.attributes["to_apply"])))
        if combiner == "add":
            zero = complex(-0.0, -0.0) if element_type.is_complex else -0.0
            return zero if has_zero else None
        return instruction.operands[1] if combiner in _IDEMPOTENT else None

    def _keeps_value(self, instruction: Instruction, rows: Rows) -> bool:
        """Return whether an instruction has no padding along these rows, or padding that a stored
        neutral value can replace."""
        if instruction.opcode not in WINDOWED:
            return True
        _, window = window_of_rows(instruction, rows.dimension)
        is_padded = window.padding_low or window.padding_high
        return not is_padded or self.padding(instruction) is not None


def _is_finite(kernel: Instruction) -> bool:
    """Return whether an instruction is an array constant whose elements are all finite."""
    value = constant_value(kernel)
    if value is None:
        return False
    wide = np.complex128 if array(kernel.shape).element_type.is_complex else np.float64
    return bool(np.isfinite(value.astype(wide)).all())


def _union(wanted: list[Operand]) -> Rows | None:
    """Return the smallest range of rows that covers all requests; None if one of them asks for the
    whole value, if their distances depend on the band, or if there are no requests."""
    found: Operand = wanted[0] if wanted else None
    for one in wanted[1:]:
        found = found.joined(one) if found is not None and one is not None else None
    return found


def _elementwise(
    instruction: Instruction, shapes: list[ArrayShape], rows: Rows
) -> tuple[Operand, ...] | None:
    """Map rows of the result to the same rows of each array operand, and all of a scalar."""
    dims = array(instruction.shape).dims
    if any(shape.dims not in (dims, ()) for shape in shapes):
        return None  # a bitcast of elements of another width
    return tuple(rows if shape.rank else None for shape in shapes)


def _broadcast(
    instruction: Instruction, shapes: list[ArrayShape], rows: Rows
) -> tuple[Operand, ...]:
    """Map rows of a broadcast to rows of its operand; all of it if it lacks the dimension."""
    dimensions = integers(instruction, "dimensions")
    if rows.dimension not in dimensions:
        return (None,)
    return (replace(rows, dimension=dimensions.index(rows.dimension)),)


def _iota(
    instruction: Instruction, shapes: list[ArrayShape], rows: Rows
) -> tuple[Operand, ...] | None:
    """Return no operands if all rows of an iota are equal; None if it counts along the rows."""
    return None if integer(instruction, "iota_dimension") == rows.dimension else ()


def _convolution(
    instruction: Instruction, shapes: list[ArrayShape], rows: Rows
) -> tuple[Operand, ...] | None:
    """Map rows of the result to the input rows under their windows, and the whole kernel; None
    along batch and feature dimensions."""
    labels = instruction.attributes["dim_labels"]
    assert isinstance(labels, ConvolutionDimensions)
    if rows.dimension not in labels.output_spatial or len(shapes) != 2:
        return None  # other operands are indices of a sparse one
    dimension, window = window_of_rows(instruction, rows.dimension)
    needed = _under(window, replace(rows, dimension=dimension))
    return None if needed is None else (needed, None)


def _reduce_window(
    instruction: Instruction, shapes: list[ArrayShape], rows: Rows
) -> tuple[Operand, ...] | None:
    """Map rows of the result to the operand rows under their windows, and the init."""
    if len(shapes) != 2:
        return None
    _, window = window_of_rows(instruction, rows.dimension)
    needed = _under(window, rows)
    return None if needed is None else (needed, None)


_Rule = Callable[[Instruction, list[ArrayShape], Rows], "tuple[Operand, ...] | None"]
_RULES: Mapping[str, _Rule] = {
    "broadcast": _broadcast,
    "convolution": _convolution,
    "iota": _iota,
    "reduce-window": _reduce_window,
}


def window_of_rows(instruction: Instruction, dimension: int) -> tuple[int, WindowDimension]:
    """Return, for a dimension of a windowed instruction's result, the operand dimension that its
    window slides along, and the window of that dimension."""
    window = instruction.attributes.get("window")
    assert isinstance(window, Window)
    labels = instruction.attributes.get("dim_labels")
    if isinstance(labels, ConvolutionDimensions):
        number = labels.output_spatial.index(dimension)
        return labels.input_spatial[number], window.dimensions[number]
    return dimension, window.dimensions[dimension]


def _under(window: WindowDimension, rows: Rows) -> Rows | None:
    """Return the operand rows under the windows of result rows; None with base dilation, where the
    first of them is no affine function of the band's start."""
    if window.base_dilation != 1:
        return None
    # Windows of 3 rows, stride 2, 1 row of padding: 4 rows from s on need 9 rows from 2 s - 1 on.
    extent = (window.size - 1) * window.window_dilation + 1
    return Rows(
        rows.dimension,
        rows.step * window.stride,
        rows.first * window.stride - window.padding_low,
        (rows.count - 1) * window.stride + extent,
    )
