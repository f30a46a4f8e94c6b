"""Write ragged-dot and scaled-dot: contractions whose factors count in groups, or are scaled."""

from __future__ import annotations

from backend_c.ir import index as ix
from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.contraction import contract
from backend_c.kernels.parts.contraction.factors import dot_factors
from backend_c.kernels.parts.contraction.group_bounds import GroupBounds
from backend_c.kernels.parts.contraction.ragged_factors import RaggedFactors
from hlo.errors import Unsupported
from hlo.types import F64, ArrayShape

__all__ = ["ragged_dot", "scaled_dot"]


def ragged_dot(
    lhs: Element,
    rhs: Element,
    group_sizes: Element,
    *,
    shape: ArrayShape,
    lhs_contracting_dims: tuple[int, ...] = (),
    rhs_contracting_dims: tuple[int, ...] = (),
    lhs_batch_dims: tuple[int, ...] = (),
    rhs_batch_dims: tuple[int, ...] = (),
    lhs_ragged_dims: tuple[int, ...] = (),
    rhs_group_dims: tuple[int, ...] = (),
    operand_precision: tuple[str, ...] = (),
    write: Writer,
    block: Scope,
) -> None:
    """result[m, n] = sum over k of lhs[m, k] * rhs[group of m, k, n], as JAX's ragged_dot_general.

    A group lies behind those before it along the ragged dimension. If the contracted dimension is
    ragged, result[g, m, n] is the sum over the k of group g; if a batch dimension is, it is a
    batch.
    """
    batch, depth = (lhs_batch_dims, rhs_batch_dims), (lhs_contracting_dims, rhs_contracting_dims)
    (ragged,) = lhs_ragged_dims
    if ragged in lhs_batch_dims:
        factors = dot_factors(lhs, rhs, batch, depth)
    else:
        group = rhs_group_dims[0] if rhs_group_dims else -1
        bounds = GroupBounds(group_sizes, block)
        factors = RaggedFactors(lhs, rhs, batch, depth, ragged, group, bounds).factors()
    write.sizes(0, factors.sizes)
    types = lhs.shape.element_type, rhs.shape.element_type
    contract(factors, types, shape.element_type, write, block)


def scaled_dot(
    lhs: Element,
    rhs: Element,
    lhs_scale: Element,
    rhs_scale: Element,
    *,
    shape: ArrayShape,
    lhs_contracting_dims: tuple[int, ...] = (),
    rhs_contracting_dims: tuple[int, ...] = (),
    lhs_batch_dims: tuple[int, ...] = (),
    rhs_batch_dims: tuple[int, ...] = (),
    operand_precision: tuple[str, ...] = (),
    algorithm: str = "",
    write: Writer,
    block: Scope,
) -> None:
    """result = dot of lhs * lhs_scale and rhs * rhs_scale, exact and rounded once.

    A scale holds for a block of its operand; a scalar stands for none.
    """
    left, right = _scaled(lhs, lhs_scale), _scaled(rhs, rhs_scale)
    factors = dot_factors(
        left, right, (lhs_batch_dims, rhs_batch_dims), (lhs_contracting_dims, rhs_contracting_dims)
    )
    write.sizes(0, factors.sizes)
    types = left.shape.element_type, right.shape.element_type
    contract(factors, types, shape.element_type, write, block)


def _scaled(operand: Element, scale: Element) -> Element:
    """Return the products of an operand and its scale, exact in f64."""
    if not scale.shape.rank:
        return operand
    if not all(map(_is_short, (operand.shape, scale.shape))):
        types = f"{operand.shape.element_type} by {scale.shape.element_type}"
        raise Unsupported(f"scaled-dot scales {types}: products are exact up to f32 and s16")
    blocks = [
        extent // max(parts, 1)
        for extent, parts in zip(operand.shape.dims, scale.shape.dims, strict=True)
    ]

    def at(*index: Expr) -> Expr:
        block = [ix.divide(i, size) for i, size in zip(index, blocks, strict=True)]
        factors = operand.at(*index), scale.at(*block)
        return apply("multiply", *(apply("widen", factor, type=F64) for factor in factors))

    shape = ArrayShape(F64, operand.shape.dims, operand.shape.dynamic)
    return Element(shape, at, operand.sizes)


def _is_short(shape: ArrayShape) -> bool:
    """Return whether products of numbers of a type are exact in f64."""
    # Significands of 24 bits (f32) and numbers of 16: two of them have at most 48 of the 53 of f64,
    # and the exponents of two f32, above -299, are far from its least.
    return shape.element_type.bits <= (32 if shape.is_float else 16)
