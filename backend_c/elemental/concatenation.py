"""Build one element of a concatenation: the operand's within which the index lies.

Slices of one operand that follow each other in it, the first element after the last, are read at
one index: a rotation (``jnp.roll``), and padding that goes round (``jnp.pad(mode="wrap")``).

    concatenate(x[5:512], x[0:5])[i] = x[(i + 5) % 512]
"""

from __future__ import annotations

from collections.abc import Sequence

from backend_c.ir import index as ix
from backend_c.ir.element import Element, Part
from backend_c.ir.loop_ir import Expr
from backend_c.ir.scope import apply
from hlo.types import PRED, ArrayShape

__all__ = ["concatenate"]


def concatenate(*operands: Element, dimensions: tuple[int, ...]) -> Element:
    """result[i] = operands[k][i - start[k]], k being the operand within which i[dimension] lies."""
    (dimension,) = dimensions
    # One without elements has none that a clamped index could read.
    parts = _joined([o for o in operands if o.shape.dims[dimension] or o.sizes], dimension)
    if not parts:
        return operands[0]
    if len(parts) == 1:
        return parts[0]
    first = parts[0].shape
    # Where each operand begins in the result: a prefix sum, of actual sizes if they are bounded.
    starts: list[Expr] = [ix.constant(0)]
    for part in parts:
        starts.append(ix.add(starts[-1], part.size(dimension)))

    def at(*index: Expr) -> Expr:
        def read(part: Element, start: Expr) -> Expr:
            shifted = ix.subtract(index[dimension], start)
            local = ix.clamp(0, shifted, part.shape.dims[dimension] - 1)
            return part.at(*index[:dimension], local, *index[dimension + 1 :])

        # A chain of selects, the first operand's outermost: the index belongs to the first operand
        # that ends behind it. Those that it cannot belong to are not read.
        low, high = ix.bounds(index[dimension])
        ends = [ix.bounds(end) for end in starts[1:]]
        reached = [
            n for n, end in enumerate(ends) if end[1] > low and (not n or ends[n - 1][0] <= high)
        ] or [len(parts) - 1]
        value = read(parts[reached[-1]], starts[reached[-1]])
        for n in reversed(reached[:-1]):
            before = apply("compare-LT", index[dimension], starts[n + 1], type=PRED)
            chosen = read(parts[n], starts[n])
            value = apply("select", before, chosen, value, type=first.element_type)
        return value

    total = sum(operand.shape.dims[dimension] for operand in operands)
    dims = (*first.dims[:dimension], total, *first.dims[dimension + 1 :])
    if not any(part.sizes for part in parts):
        return Element(ArrayShape(first.element_type, dims), at)
    dynamic = tuple(any(p.shape.dynamic[d] for p in parts if p.sizes) for d in range(first.rank))
    sizes = tuple(starts[-1] if d == dimension else _any_size(parts, d) for d in range(first.rank))
    return Element(ArrayShape(first.element_type, dims, dynamic), at, sizes)


def _any_size(parts: Sequence[Element], dimension: int) -> Expr:
    """Return the actual size of a dimension in which all operands agree."""
    bounded = [p for p in parts if p.sizes and p.shape.dynamic[dimension]]
    return (bounded or parts)[0].size(dimension)


def _joined(parts: Sequence[Element], dimension: int) -> list[Element]:
    """Return the operands of a concatenation, those that follow each other in one array joined."""
    joined: list[Element] = []
    for part in parts:
        found = _following(joined[-1], part, dimension) if joined else None
        joined[-1:] = [found] if found else [*joined[-1:], part]
    return joined


def _following(before: Element, after: Element, dimension: int) -> Element | None:
    """Return the concatenation of two slices as one that goes round an operand; None if ``after``
    does not begin where ``before`` ends."""
    one, other = before.part or _whole(before), after.part or _whole(after)
    operand, extent = one.operand, one.operand.shape.dims[dimension]
    end = one.firsts[dimension] + before.shape.dims[dimension]
    firsts = (*one.firsts[:dimension], end % extent, *one.firsts[dimension + 1 :])
    if operand is not other.operand or other.firsts != firsts or operand.sizes:
        return None
    length = before.shape.dims[dimension] + after.shape.dims[dimension]
    dims = (*before.shape.dims[:dimension], length, *before.shape.dims[dimension + 1 :])

    def at(*index: Expr) -> Expr:
        places = map(ix.add, index, one.firsts)
        return operand.at(*map(ix.modulo, places, operand.shape.dims))

    return Element(ArrayShape(operand.shape.element_type, dims), at, part=one)


def _whole(element: Element) -> Part:
    """Return an array as the part of itself that is all of it."""
    return Part(element, (0,) * element.shape.rank)
