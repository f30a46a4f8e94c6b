"""Write kernels that compute neighbouring rows in lanes, by strips of them: rows across memory, and
short ones that follow each other.

An element that several of a strip's loops read is computed once if it is expensive, and then in an
array on the stack, as the elements of rows are (:mod:`backend_c.ir.row_cache`). So is a value of a
whole row, however cheap, which each element of the row would compute again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from backend_c.ir.element import Element, Value, Writer
from backend_c.ir.loop_ir import Array
from backend_c.ir.scope import Scope
from backend_c.ir.settings import Settings
from backend_c.ir.short_rows import ShortRows, rows_of_strip
from backend_c.ir.strip import Strip
from hlo.module import Computation, Instruction
from hlo.passes.cost import COST
from hlo.passes.index_paths import WRITTEN_OUT
from hlo.passes.rewriting import array
from hlo.passes.row_loops.rows import Kind, Rows, kinds, reductions
from hlo.types import F32, ArrayShape, Shape, leaves

_CACHE = 1 << 20  # bytes of a strip, of all arrays: a core's share of the caches
# Bytes of neighbours: memory is read in shorter snippets at a fraction of its speed, in much
# shorter ones the last cache, too.
_SNIPPET, _LEAST_SNIPPET = 1 << 12, 1 << 8
_LANES = 16  # rows of a line of f32
_WIDEST = 1 << 12  # rows whose single values stay in the first cache
_TASKS = 32  # strips, so that threads can share them well
_STACK = 1 << 17  # bytes: as the longest row of f64 takes


def strip_of(
    scope: Scope, computation: Computation, rows: Rows, kept: Collection[str]
) -> Strip | None:
    """Return the strips of a kernel: of rows across memory, or of short ones; None of others.
    ``kept`` are the instructions whose elements several loops over a row read."""
    if rows.columns == 1:
        return _short_rows_of(scope, computation, rows)
    columns = rows.columns if scope.is_flat else _last_columns(computation)
    each, widest = _bytes_of_place(computation, rows)
    width = max(_CACHE // (rows.length * each), _SNIPPET // widest)
    if any(_is_narrow(i.shape) for i in computation.instructions if i.name in kept):
        width = min(width, _STACK // (rows.length * F32.numpy.itemsize))
    width = max(min(width, rows.number // _TASKS, _WIDEST), _LEAST_SNIPPET // widest)
    # Strips of equal width, in whole vectors, where that is possible.
    width = -(-columns // -(-columns // width))
    return Strip(scope, rows, columns, min(columns, -(-width // _LANES) * _LANES))


def _short_rows_of(scope: Scope, computation: Computation, rows: Rows) -> ShortRows | None:
    """Return the strips of a kernel that runs along short rows; None if it has none, or too few
    beside each other for lanes."""
    settings = scope.settings
    width = _rows_of_strip(computation, rows)
    if not (settings.is_fast and settings.has_lanes and width):
        return None
    if any(map(_has_no_lanes, computation.instructions)):
        return None
    columns = rows.number if scope.is_flat else _last_columns(computation)
    return ShortRows(scope, rows, columns, width) if columns >= _LANES else None


def rows_by_name(computation: Computation, settings: Settings) -> dict[str, Rows]:
    """Return the rows of the reductions that are read row by row, by name.

    A reduction that is all of a kernel has loops of its own (:mod:`backend_c.kernels.reduction`),
    unless its rows are computed side by side: such as are longer than what those write out, and
    fill no vectors.
    """
    found = {instruction.name: rows for instruction, rows in reductions(computation)}
    if found.keys() != {computation.root}:
        return found
    rows = found[computation.root]
    is_here = settings.is_fast and settings.has_lanes and rows.columns == 1
    is_short = rows.length > WRITTEN_OUT and _rows_of_strip(computation, rows) > 0
    return found if is_here and is_short and rows.number >= _LANES else {}


def _rows_of_strip(computation: Computation, rows: Rows) -> int:
    """Return how many rows that follow each other are computed side by side; 0 for none. Longer
    ones only if they are transposed: of arrays that are read in another order, lanes would gather
    elements that lie rows apart."""
    _, widest = _bytes_of_place(computation, rows)
    width = rows_of_strip(rows.length, widest)
    if rows.length <= WRITTEN_OUT or not width:
        return width
    kind = kinds(computation, rows)
    whole = rows.number * rows.length
    is_by_rows = all(
        kind.get(one.name) is Kind.WHOLE
        for one in computation.parameters
        if isinstance(one.shape, ArrayShape) and one.shape.elements >= whole
    )
    return width if is_by_rows else 0


def _has_no_lanes(instruction: Instruction) -> bool:
    """Return whether an instruction cannot be computed in strips: of bounded dimensions, or complex
    numbers, whose sums are exact."""
    shapes = leaves(instruction.shape)
    return any(any(s.dynamic) or s.element_type.is_complex for s in shapes)


def memory_of(strip: Strip, element: Element, writer: Writer, *, is_taken: bool) -> Array | None:
    """Return the array in memory in which a strip keeps an element of rows; None for the stack.

    That of the only result, if its elements are of the same type and no others are there
    (``is_taken``): they are read right before they are written over. But narrow floats are not
    rounded and converted for that, which takes as long as an exponential, if the stack has room.
    """
    scope, shape = strip.scope, element.shape
    if isinstance(strip, ShortRows):  # few enough for the first cache
        return None
    is_narrow = _is_narrow(shape)
    size = F32.numpy.itemsize if is_narrow else shape.element_type.numpy.itemsize
    has_room = strip.rows.length * strip.width * size <= _STACK
    is_free = len(writer.shapes) == 1 and not (is_taken or writer.within or writer.epilogue)
    is_whole = strip.rows.kind(writer.shapes[0]) is Kind.WHOLE
    is_same = is_free and is_whole and writer.shapes[0].element_type is shape.element_type
    if is_same and not (is_narrow and has_room):
        return writer.arrays[0]
    return None if has_room else scope.scratch(shape.element_type, shape.elements)


def _is_narrow(shape: Shape) -> bool:
    """Return whether registers hold the elements of an array in a wider type."""
    if not isinstance(shape, ArrayShape):
        return False
    return shape.element_type.is_float and shape.element_type.bits < F32.bits


def _last_columns(computation: Computation) -> int:
    """Return how many neighbouring rows lie in the last dimension of an array that is reduced."""
    by_name = {i.name: i for i in computation.instructions}
    (reduction, _), *_ = reductions(computation)
    dims = array(by_name[reduction.operands[0]].shape).dims
    reduced = reduction.attributes["dimensions"]
    assert isinstance(reduced, tuple)
    kept = [extent for d, extent in enumerate(dims) if d not in reduced]
    return next((extent for extent in reversed(kept) if extent > 1), 1)


def _bytes_of_place(computation: Computation, rows: Rows) -> tuple[int, int]:
    """Return the bytes of an element of all arrays of whole rows that a kernel reads and writes,
    and of the widest of them."""
    found = [
        one.shape.element_type.numpy.itemsize
        for one in computation.instructions
        if one.opcode == "parameter" or one.name == computation.root
        if isinstance(one.shape, ArrayShape) and rows.kind(one.shape) is Kind.WHOLE
    ]
    return sum(found) or 1, max(found, default=1)


def kept_singles(computation: Computation, rows: Rows) -> set[str]:
    """Choose the computed values of whole rows that the elements of these read."""
    kind = kinds(computation, rows)
    singles = {
        i.name
        for i in computation.instructions
        if kind.get(i.name) is Kind.SINGLE and COST.get(i.opcode, 0)
    }
    read = {o for i in computation.instructions if i.name not in singles for o in i.operands}
    return singles & read


def arguments_of(strip: Strip, computation: Computation, readers: Sequence[Value]) -> list[Value]:
    """Return the readers of arguments; those of short rows read them transposed."""
    if not isinstance(strip, ShortRows):
        return [*readers]
    kind = kinds(computation, strip.rows)
    return [
        strip.transposed(reader)
        if isinstance(reader, Element) and kind.get(parameter.name) is Kind.WHOLE
        else reader
        for parameter, reader in zip(computation.parameters, readers, strict=True)
    ]


def write_strips(strip: Strip, elements: Sequence[Element], writer: Writer, cost: int) -> None:
    """Write the loops of all strips: those of reductions, then those of the results; ``cost`` is
    that of an element in operations."""
    rows = strip.rows
    single = [n for n, e in enumerate(elements) if rows.kind(e.shape) is Kind.SINGLE]
    whole = [n for n, e in enumerate(elements) if rows.kind(e.shape) is Kind.WHOLE]
    with strip.each(cost):
        if single:
            with strip.lanes():
                for number in single:
                    index = strip.single_index(elements[number].shape.dims)
                    writer.some([number], index, (elements[number].at(*index),))
        if whole:
            strip.write_whole(elements, whole, writer)
