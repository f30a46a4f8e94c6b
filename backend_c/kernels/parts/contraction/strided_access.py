"""Recognise factors and results that lie in memory at constant strides, to pass to the runtime.

A reader is applied to symbolic indices: if it returns a load whose offset grows by a constant with
each of them, runtime functions can read the operand in place.
"""

from __future__ import annotations

from typing import NamedTuple

from backend_c.ir import index as ix
from backend_c.ir.element import Writer
from backend_c.ir.loop_ir import (
    INDEX,
    Apply,
    Array,
    Constant,
    Expr,
    Let,
    Load,
    Pointer,
    Variable,
    subexpressions,
)
from backend_c.ir.scope import Scope
from backend_c.kernels.parts.contraction.contraction_loops import Write
from backend_c.kernels.parts.contraction.factors import Factors, Read
from hlo.types import ElementType


class Strides(NamedTuple):
    """Hold the distance in elements of neighbouring lines (rows or columns), and of steps."""

    line: int
    step: int


def factor_strides(
    read: Read, sizes: tuple[int, int, int], element_type: ElementType
) -> Strides | None:
    """Return the strides of a factor in memory, or None if it is computed or has another type.

    ``sizes`` are those of the batch, the lines and the steps.
    """
    b, line, step = (_any_index(name, size) for name, size in zip(("b", "line", "step"), sizes))
    found = []
    for index in (
        (b, line, step),
        (b, _next(line, sizes[1]), step),
        (b, line, _next(step, sizes[2])),
    ):
        value, conditions = read(*index)
        if conditions or type(value) is not Load or value.array.element_type is not element_type:
            return None
        # The C array of a view has elements of another type.
        if value.array.memory is not None:
            return None
        found.append(value.offset)
    return _differences(found)


def factor_pointer(read: Read, b: Expr, line: Expr, step: Expr) -> Pointer:
    """Return the address of a factor for which :func:`factor_strides` found strides."""
    value, _ = read(b, line, step)
    assert isinstance(value, Load)
    return Pointer(value.array, value.offset)


def result_array(
    write: Write, factors: Factors, element_type: ElementType
) -> tuple[Array, Strides] | None:
    """Return the array that results are stored to unchanged, with the strides of rows and columns.

    None if an epilogue computes something from them, or if columns do not lie side by side.
    """
    if not isinstance(write, Writer) or len(write.arrays) != 1 or write.epilogue is not None:
        return None
    if write.arrays[0].element_type is not element_type:
        return None
    sizes = factors.batch, factors.m, factors.n
    b, m, n = (_any_index(name, size) for name, size in zip(("b", "m", "n"), sizes))
    places = ((b, m, n), (b, _next(m, factors.m), n), (b, m, _next(n, factors.n)))
    strides = _differences([result_offset(write, factors, place) for place in places])
    if strides is None or (factors.n > 1 and strides.step != 1):
        return None
    return write.arrays[0], strides


def result_offset(write: Writer, factors: Factors, place: tuple[Expr, Expr, Expr]) -> Expr:
    """Return the offset of the result at a (batch, row, column)."""
    return write.offset(0, factors.place(*place))


def _any_index(name: str, size: int) -> Variable:
    """Return a symbolic index, of all but the last value, so that its successor is in bounds."""
    return Variable(INDEX, f"any_{name}", 0, max(size - 2, 0))


def _next(index: Expr, size: int) -> Expr:
    """Return the successor of an index; the index itself in a dimension of one element."""
    return ix.add(index, 1) if size > 1 else index


def _differences(offsets: list[Expr]) -> Strides | None:
    """Return the strides from the offsets of an element and its successors; None if not
    constant."""
    differences = [ix.value_of(ix.subtract(offset, offsets[0])) for offset in offsets[1:]]
    if differences[0] is None or differences[1] is None:
        return None
    return Strides(differences[0], differences[1])


def has_lines_side_by_side(read: Read, sizes: tuple[int, int, int], scope: Scope) -> bool:
    """Return whether memory is contiguous along a factor's lines rather than along its steps.

    Loads in values that the reader binds count, too. Must be called outside loops; what was bound
    for nothing is eliminated as dead. Inside a computation that is called per element, factors are
    too small for it to matter.
    """
    if scope.is_inside_element:
        return False
    if sizes[1] == 1 or sizes[2] == 1:
        return sizes[2] == 1
    _, by_line, by_step = _contiguous_loads(read, sizes, scope)
    return by_line > by_step


def has_batches_side_by_side(read: Read, sizes: tuple[int, int, int], scope: Scope) -> bool:
    """Return whether memory is contiguous along a factor's batches; see
    :func:`has_lines_side_by_side`."""
    if scope.is_inside_element:
        return False
    by_batch, *others = _contiguous_loads(read, sizes, scope)
    return all(by_batch > n for n, size in zip(others, sizes[1:], strict=True) if size > 1)


def _contiguous_loads(
    read: Read, sizes: tuple[int, int, int], scope: Scope
) -> tuple[int, int, int]:
    """Count a factor's loads that are contiguous along the batch, the lines and the steps."""
    indices = tuple(_any_index(name, size) for name, size in zip(("b", "line", "step"), sizes))
    before = len(scope.statements)
    value, _ = read(*indices)
    bound = [s.value for s in scope.statements[before:] if isinstance(s, Let)]
    loads = [e for whole in (value, *bound) for e in subexpressions(whole) if type(e) is Load]
    batch, line, step = (sum(_coefficient(load.offset, i) == 1 for load in loads) for i in indices)
    return batch, line, step


def _coefficient(offset: Expr, variable: Variable) -> int:
    """Return the coefficient of a variable in an affine form."""
    match offset:
        case Apply("add", (lhs, rhs), _):
            return _coefficient(lhs, variable) + _coefficient(rhs, variable)
        case Apply("multiply", (lhs, Constant(_, factor)), _):
            return _coefficient(lhs, variable) * int(factor)  # type: ignore[arg-type]
        case _:
            return int(offset == variable)
