"""Stage factors of a contraction in the shared memory of a block of threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from backend_c.elemental.data_movement import all_of
from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Array,
    Constant,
    Expr,
    Let,
    Load,
    Pointer,
    Statement,
    Variable,
    subexpressions,
)
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.block_transposition import write_in_blocks
from backend_c.kernels.parts.contraction.contraction_loops import as_type, masked
from backend_c.kernels.parts.contraction.factors import Patches, Read
from backend_c.kernels.parts.contraction.strided_access import has_lines_side_by_side
from backend_c.kernels.parts.contraction_in_blocks.patch_corners import PatchCorners
from backend_c.kernels.parts.transposed_map import TransposedMap
from hlo.types import PRED, ArrayShape, ElementType

# Operations that take no longer than the load of a factor; others are not done again by each block.
_CHEAP = frozenset({
    *("add", "subtract", "multiply", "negate", "abs", "maximum", "minimum"),
    *("and", "or", "xor", "not", "select", "clamp", "within", "is-finite"),
    *("convert", "widen", "bitcast", "real", "imag", "complex"),
})  # fmt: skip
_MOST = 1 << 27  # factors that are written out
_VECTOR = 16  # bytes
_SECTOR = 8  # elements of f32, which memory gives at least
# cp.async copies 4, 8 or 16 bytes.
_COPIED = (4, 8)  # bytes of elements that are copied one by one without waiting

Sizes = tuple[int, int, int]  # of the batch, the lines and the steps


class Shape(NamedTuple):
    """Describe one stage of a factor in shared memory: type, lines, steps, user.

    Tensor cores read either order, but 8-bit types only as [line][step].
    """

    type: ElementType
    lines: int
    steps: int
    is_tensor: bool


def staged_read(read: Read, sizes: Sizes, scope: Scope) -> Read:
    """Return a reader of a factor that is cheap: the given one, or one of a copy in memory.

    Must be called outside loops.
    """
    if _is_cheap(read, sizes, scope) or sizes[0] * sizes[1] * sizes[2] > _MOST:
        return read
    with scope.undone():
        any_value, conditions = read(*_anywhere(sizes))
    if conditions:  # patches of a convolution may be many times its input
        return read
    array = scope.scratch(any_value.type, sizes[0] * sizes[1] * sizes[2], frozen=True)
    with nest.flat(scope, sizes) as place:
        scope.store(array, ix.linearize(place, sizes), read(*place)[0])
    return _read_of(array, sizes)


def _turned(read: Read, sizes: Sizes, element_type: ElementType, scope: Scope) -> Read:
    """Transpose a factor to memory, so that its steps are contiguous; return its reader."""
    array = scope.scratch(element_type, sizes[0] * sizes[1] * sizes[2], frozen=True)
    shape = ArrayShape(element_type, sizes)

    def at(*index: Expr) -> Expr:
        b, line, step = index
        return as_type(masked(*read(b, line, step)), element_type)

    tiled = TransposedMap(scope, [Element(shape, at)], [0], along=1, last=2, is_moved=False)
    write_in_blocks(tiled, Writer(scope, (shape,), (array,), (None,)))
    return _read_of(array, sizes)


def _read_of(array: Array, sizes: Sizes) -> Read:
    """Return the reader of factors stored as [batch][line][step]."""
    return lambda b, line, step: (Load(array, ix.linearize((b, line, step), sizes)), ())


def _anywhere(sizes: Sizes) -> list[Variable]:
    """Return a symbolic index (batch, line, step)."""
    return [Variable(INDEX, f"any_{d}", 0, max(size - 1, 0)) for d, size in zip("bik", sizes)]


def _is_cheap(read: Read, sizes: Sizes, scope: Scope) -> bool:
    """Return whether computing a factor takes no longer than loading it: cheap operations, no
    loops."""
    with scope.undone():
        before = len(scope.statements)
        value, _ = read(*_anywhere(sizes))
        made = scope.statements[before:]
    if not all(isinstance(one, Let) for one in made):
        return False
    values = [value, *(one.value for one in made if isinstance(one, Let))]
    operations = {
        part.operation
        for whole in values
        for part in subexpressions(whole)
        if isinstance(part, Apply) and part.type is not INDEX
    }
    return all(name in _CHEAP or name.startswith("compare-") for name in operations)


class Staging:
    """Write the copies of one factor into shared memory, one stage of steps at a time.

    Stages are [step][line], or [line][step], with rows padded by a vector. Factors that memory has
    as they are wanted are copied asynchronously, in vectors where the memory is in that order.
    """

    def __init__(
        self, read: Read, sizes: Sizes, shape: Shape, scope: Scope, patches: Patches | None = None
    ) -> None:
        self._sizes, self._shape, self._scope = sizes, shape, scope
        self._corners = PatchCorners(patches, shape.lines, scope) if patches is not None else None
        self._read = staged_read(read, sizes, scope)
        lines_first = has_lines_side_by_side(self._read, sizes, scope)
        # Tensor cores read bytes along steps alone: one by one they would take longest of all.
        if lines_first and shape.is_tensor and shape.type.bits == 8 and patches is None:
            self._read = _turned(self._read, sizes, shape.type, scope)
            lines_first = False
        self._reads_across = lines_first
        self.is_across = lines_first and shape.type.bits == 16 if shape.is_tensor else True
        size = shape.type.numpy.itemsize
        self._vector = _VECTOR // size
        inner = shape.lines if self.is_across else shape.steps
        self._pitch = inner + self._vector
        self._has_vectors = self._is_in_vectors()
        plain = self._has_vectors or (size in _COPIED and self._is_plain())
        self.waits = plain  # for copies under way

    @property
    def elements(self) -> int:
        """Return the number of elements of one stage in shared memory."""
        shape = self._shape
        return (shape.steps if self.is_across else shape.lines) * self._pitch

    def place(self, line: Expr) -> Expr:
        """Return the offset of a line's first step within a stage."""
        return ix.multiply(line, 1 if self.is_across else self._pitch)

    def begin(self, place: tuple[Expr, Expr]) -> None:
        """Write what precedes all stages of a tile: the corners of patches."""
        if self._corners is not None:
            self._corners.bring(*place, self._sizes[1])
            self._scope.barrier()

    def _factor(
        self, b: Expr, lines: tuple[Expr, Expr], step: Expr
    ) -> tuple[Expr, tuple[Expr, ...]]:
        """Return a factor and its conditions; ``lines`` are the line's number in all and in the
        tile."""
        line, own = lines
        return self._corners.factor(b, own, step) if self._corners else self._read(b, line, step)

    def emit(self, place: tuple[Expr, Expr], first_step: Expr, into: Array, offset: Expr) -> None:
        """Write the copy of the steps from ``first_step`` on of a tile's lines, to ``offset``.

        ``place`` is the batch and the first line. Lines beyond the last are copies of it, or zero;
        factors beyond the last step are zero.
        """
        if self._has_vectors:
            self._vectors(place, first_step, into, offset)
        else:
            self._elements(place, first_step, into, offset)

    def _elements(self, place: tuple[Expr, Expr], first: Expr, into: Array, offset: Expr) -> None:
        """Write the copy element by element; reads of neighbouring threads are coalesced."""
        scope, shape, (_, count, k) = self._scope, self._shape, self._sizes
        with scope.loop(shape.steps * shape.lines, "threads") as number:
            own_step, own_line = self._own(number)
            line = ix.clamp(0, ix.add(place[1], own_line), count - 1)
            step = ix.add(first, own_step)
            inside = ix.clamp(0, step, k - 1)
            value, conditions = self._factor(place[0], (line, own_line), inside)
            if k % shape.steps:
                conditions = (*conditions, apply("compare-LT", step, ix.constant(k), type=PRED))
            at = ix.add(offset, self._at(own_line, own_step))
            if self.waits:
                assert isinstance(value, Load)
                source = Pointer(value.array, value.offset)
                function = f"hlo_block_copy_{shape.type.numpy.itemsize}"
                holds = all_of(conditions) if conditions else Constant(PRED, value=True)
                scope.call(function, Pointer(into, at), source, holds)
            else:
                scope.store(into, at, as_type(masked(value, conditions), shape.type))

    def _own(self, number: Expr) -> tuple[Expr, Expr]:
        """Map a thread's element number to its (step, line).

        Neighbouring threads read neighbours in memory, and write to all banks of shared memory.
        """
        shape = self._shape
        if self._reads_across:
            step, line = ix.delinearize(number, (shape.steps, shape.lines))
            return step, line
        # A warp copies 8 steps (a sector of memory) of 4 lines: each element goes to a bank of its
        # own.
        some = min(shape.steps, _SECTOR) if self.is_across else shape.steps
        before, line, step = ix.delinearize(number, (shape.steps // some, shape.lines, some))
        return ix.add(ix.multiply(before, some), step), line

    def _vectors(self, place: tuple[Expr, Expr], first: Expr, into: Array, offset: Expr) -> None:
        """Write the copy in vectors of contiguous elements."""
        scope, shape, (_, count, k) = self._scope, self._shape, self._sizes
        width, across = self._vector, self.is_across
        dims = (shape.steps, shape.lines) if across else (shape.lines, shape.steps)
        with scope.loop(dims[0] * (dims[1] // width), "threads") as number:
            outer, chunk = ix.delinearize(number, (dims[0], dims[1] // width))
            inner = ix.multiply(chunk, width)
            own_step, own_line = (outer, inner) if across else (inner, outer)
            line, step = ix.add(place[1], own_line), ix.add(first, own_step)
            if across:
                there = ix.clamp(0, ix.subtract(count, line), width)
                is_there = [apply("compare-LT", step, ix.constant(k), type=PRED)]
                step = ix.clamp(0, step, k - 1)
            else:
                there = ix.clamp(0, ix.subtract(k, step), width)
                is_there = []
                line = ix.clamp(0, line, count - 1)
            value, conditions = self._factor(place[0], (line, own_line), step)
            assert isinstance(value, Load)
            for condition in (*is_there, *conditions):
                there = apply("select", condition, there, ix.constant(0), type=INDEX)
            at = ix.add(offset, self._at(own_line, own_step))
            source = Pointer(value.array, value.offset)
            function = f"hlo_block_copy_line_{shape.type.numpy.itemsize}"
            scope.call(function, Pointer(into, at), source, there)

    def _at(self, line: Expr, step: Expr) -> Expr:
        """Return the offset of a (line, step) within a stage."""
        outer, inner = (step, line) if self.is_across else (line, step)
        return ix.add(ix.multiply(outer, self._pitch), inner)

    def _is_plain(self) -> bool:
        """Return whether factors are plain loads of the staged type."""
        with self._scope.undone():
            value, _ = self._read(*_anywhere(self._sizes))
        return self._is_load(value)

    def _is_load(self, value: Expr) -> bool:
        if type(value) is not Load or value.array.memory is not None:
            return False
        return value.array.element_type is self._shape.type

    def _is_in_vectors(self) -> bool:
        """Return whether whole vectors of factors are contiguous in memory, in the order of a
        stage."""
        scope, width = self._scope, self._vector
        inner = 1 if self.is_across else 2
        if self._sizes[inner] < width:
            return False
        with scope.undone():
            before = len(scope.statements)
            index: list[Expr] = list(_anywhere(self._sizes))
            chunk = Variable(INDEX, "any_chunk", 0, self._sizes[inner] // width - 1)
            found = []
            for n in range(width):
                index[inner] = ix.add(ix.multiply(chunk, width), n)
                found.append(self._read(index[0], index[1], index[2]))
            made = scope.statements[before:]
        first, conditions = found[0]
        if not isinstance(first, Load) or not all(self._is_load(value) for value, _ in found):
            return False
        if any(other != conditions for _, other in found) or not _is_index(made, first, conditions):
            return False
        offsets = [value.offset for value, _ in found if isinstance(value, Load)]
        return all(ix.value_of(ix.subtract(o, offsets[0])) == n for n, o in enumerate(offsets))


def _is_index(made: Sequence[Statement], value: Load, conditions: Sequence[Expr]) -> bool:
    """Return whether an address and its conditions are computed without loads.

    They may then be evaluated for elements beyond the last.
    """
    if not all(isinstance(one, Let) for one in made):
        return False
    parts = [value.offset, *conditions, *(one.value for one in made if isinstance(one, Let))]
    return not any(isinstance(e, Load) for whole in parts for e in subexpressions(whole))
