"""Handle bounded dimensions in generated code: actual sizes as expressions, zeros beyond them.

A buffer has room for the bounds, and beside it lie the actual sizes
(:class:`backend_c.lower.plan.Buffer`). Loops of maps run over the bounds: what is computed beyond
the actual sizes means nothing, and whoever reads it must not let it count. :mod:`hlo.dynamic_sizes`
says what the sizes of results are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backend_c.ir import index as ix
from backend_c.ir.element import Element, Value, zero
from backend_c.ir.loop_ir import INDEX, Constant, Expr
from backend_c.ir.scope import Scope, apply
from hlo.dynamic_sizes import agreements, meaningless
from hlo.errors import Unsupported
from hlo.module import Instruction
from hlo.types import PRED, ArrayShape, Shape, bounded, is_bounded


def with_agreed_sizes(
    instruction: Instruction, shapes: Sequence[Shape], operands: list[Value], scope: Scope
) -> list[Value]:
    """Make operands agree: dimensions that must be equal get the smallest of their sizes.

    Raises Unsupported where an op of bounded operands has no meaning.
    """
    elements = [operand for operand in operands if isinstance(operand, Element)]
    if len(elements) < len(operands) or not any(element.sizes for element in elements):
        return operands
    opcode, attributes = instruction.opcode, instruction.attributes
    if why_not := meaningless(opcode, shapes, attributes, instruction.shape):
        raise Unsupported(f"%{instruction.name} = {opcode}: {why_not}")
    # Each agreement names (operand, dimension) pairs that must have one size. Only bounded ones are
    # asked for it: a static dimension is whole, which its bound says.
    for operand_dimensions, stretches in agreements(opcode, shapes, attributes):
        bounded_ones = [(n, d) for n, d in operand_dimensions if _may_vary(shapes[n], d)]
        sizes = list(dict.fromkeys(elements[n].size(d) for n, d in bounded_ones))
        common = _AgreedSize(
            scope, stretches, elements[bounded_ones[0][0]].shape.dims[bounded_ones[0][1]]
        )
        size = common.of(sizes)
        for n, d in operand_dimensions:
            # Sizes that are the same expression need no test at run time.
            may_stretch = len(sizes) > 1 and stretches and (n, d) in bounded_ones
            elements[n] = _of_size(elements[n], d, size, may_stretch)
    return list(elements)


def _may_vary(shape: Shape, dimension: int) -> bool:
    """Return whether an operand's dimension is bounded."""
    return isinstance(shape, ArrayShape) and is_bounded(shape, dimension)


@dataclass(frozen=True)
class _AgreedSize:
    """Compute the one size of several dimensions of the same bound.

    ``stretches``: a size of 1 stands for any other (implicit broadcast).
    """

    scope: Scope
    stretches: bool
    bound: int

    def of(self, sizes: Sequence[Expr]) -> Expr:
        """Return the minimum of the sizes, without those of 1 that are broadcast."""
        result = sizes[0]
        for size in sizes[1:]:
            # The clamp tells index arithmetic the bounds; the value is within them already.
            result = self.scope.bind(ix.clamp(0, self._of_two(result, size), self.bound))
        return result

    def _of_two(self, one: Expr, other: Expr) -> Expr:
        least = smaller_size(one, other)
        if not self.stretches:
            return least
        for size, instead in ((one, other), (other, one)):
            is_one = apply("compare-EQ", size, ix.constant(1), type=PRED)
            least = apply("select", is_one, instead, least, type=INDEX)
        return least


def smaller_size(one: Expr, other: Expr | int) -> Expr:
    """Return the smaller one of two sizes."""
    # No size is negative, so that this is the minimum: a clamp's bounds are known.
    return ix.clamp(0, one, other)


def _of_size(element: Element, dimension: int, size: Expr, may_stretch: bool) -> Element:
    """Give a dimension another size; if it may stretch, its last element is repeated."""
    sizes = [element.size(d) for d in range(element.shape.rank)]
    extent, before = element.shape.dims[dimension], sizes[dimension]
    sizes[dimension] = size
    if not may_stretch or before == size:
        return resized(element, sizes)
    # Of size 1, its one element is read everywhere; else the common size is at most its own, and
    # the clamp changes no index within that.
    last = ix.clamp(0, ix.subtract(before, 1), max(extent - 1, 0))

    def at(*index: Expr) -> Expr:
        there = ix.clamp(0, index[dimension], last)
        return element.at(*index[:dimension], there, *index[dimension + 1 :])

    return resized(Element(element.shape, at), sizes)


def resized(element: Element, sizes: Sequence[Expr]) -> Element:
    """Return an element with other actual sizes; dimensions whose size is their bound are
    static."""
    shape = element.shape
    varies = [ix.value_of(size) != dim for size, dim in zip(sizes, shape.dims, strict=True)]
    dynamic = tuple(is_bounded(shape, d) or varies[d] for d in range(shape.rank))
    kept = tuple(sizes) if any(dynamic) else ()
    resized_shape = bounded(shape.element_type, shape.dims, dynamic)
    return Element(resized_shape, element.at, kept, element.array)


def inside(index: Sequence[Expr], sizes: Sequence[Expr], dims: Sequence[int]) -> list[Expr]:
    """Return the conditions under which an index within ``dims`` is within the actual sizes."""
    return [
        apply("compare-LT", i, size, type=PRED)
        for i, size, dim in zip(index, sizes, dims, strict=True)
        if ix.value_of(size) != dim
    ]


def zero_beyond(element: Element, sizes: Sequence[Expr]) -> Element:
    """Return an element that is zero beyond the actual sizes."""
    dims = element.shape.dims

    def at(*index: Expr) -> Expr:
        value = element.at(*index)
        for condition in inside(index, sizes, dims):
            value = apply("select", condition, value, zero(value.type), type=value.type)
        return value

    return Element(element.shape, at, element.sizes)


def identity_beyond(element: Element) -> Element:
    """Pad square matrices with the identity beyond their actual size (zeros beside it).

    What is computed from the padding then leaves what is computed within the size unchanged: a
    factorisation or substitution of [[A, 0], [0, I]].
    """
    if not any(is_bounded(element.shape, element.shape.rank - side) for side in (1, 2)):
        return Element(element.shape, element.at, (), element.array)

    def at(*index: Expr) -> Expr:
        *_, row, column = index
        there = inside(index[-2:], element.sizes[-2:], element.shape.dims[-2:])
        value = element.at(*index)
        on_diagonal = apply("compare-EQ", row, column, type=PRED)
        one = Constant(value.type, 1 + 0j if value.type.is_complex else 1.0)
        outside = apply("select", on_diagonal, one, zero(value.type), type=value.type)
        for condition in there:
            value = apply("select", condition, value, outside, type=value.type)
        return value

    return Element(element.shape, at)


def as_declared(element: Element, shape: ArrayShape) -> Element:
    """Convert an element to the bounds that its instruction declares.

    A dimension that is declared static is whole, with zeros beyond its actual size.
    """
    if not element.sizes:
        return element
    sizes = [
        size if is_bounded(shape, d) else ix.constant(element.shape.dims[d])
        for d, size in enumerate(element.sizes)
    ]
    if sizes == list(element.sizes):
        return element
    limits = [
        ix.constant(dim) if is_bounded(shape, d) else size
        for d, (size, dim) in enumerate(zip(element.sizes, element.shape.dims, strict=True))
    ]
    whole = bounded(shape.element_type, shape.dims, shape.dynamic)
    kept = tuple(sizes) if shape.is_dynamic else ()
    return Element(whole, zero_beyond(element, limits).at, kept)


def product(sizes: Sequence[Expr]) -> Expr:
    """Return the product of actual sizes: a number of elements."""
    result: Expr = ix.constant(1)
    for size in sizes:
        number, factor = ix.value_of(size), ix.value_of(result)
        if number is not None:
            result = ix.multiply(result, number)
        elif factor is not None:
            result = ix.multiply(size, factor)
        else:
            result = apply("multiply", result, size)
    return result
