"""Enclose dots and convolutions: sums of products in any order, with or without FMA.

The bound is that of :mod:`interp.envelope.float_sums.sums`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from hlo.attributes import ConvolutionDimensions, SparsityConfig, Window
from hlo.sparse_operands import stored_sparsely
from hlo.types import F32, F64, ArrayShape, ElementType
from hlo.values import Array
from interp.envelope import budget
from interp.envelope.blocks import in_blocks_of, is_uniform
from interp.envelope.boolean_masks import is_ever
from interp.envelope.budget import Precision
from interp.envelope.complex_numbers import joined, parts
from interp.envelope.enclosure import (
    Enclosure,
    all_certain,
    anything,
    between,
    finfo,
    hull,
    is_certain,
    is_nan,
    is_nan_alone,
    moved,
    nan_where,
    point,
    represents_infinity,
    rounded_down,
    rounded_up,
    where,
)
from interp.envelope.float_sums.addends import Addends
from interp.envelope.float_sums.sums import flushing_error, rounding_error
from interp.envelope.interval_rules import flushed, of_either_sign
from interp.envelope.ops.conversion import convert, holds
from interp.envelope.ops.factors import Ball, ball, in_range, without_loss
from interp.envelope.ops.known_products import error_of_exact, of_products
from interp.envelope.ops.upper_bounds import bound
from interp.exact.matrix_products import products_by
from interp.exact.sums import component_type
from interp.ops import contraction as exact
from interp.ops import ragged_dot as ragged

__all__ = ["convolution", "dot", "ragged_dot"]

Product = Callable[[Array, Array], Array]
Pair = tuple[int, Ball, Ball]  # a sign, and two factors


def dot(
    lhs: Enclosure,
    rhs: Enclosure,
    *,
    shape: ArrayShape,
    lhs_contracting_dims: tuple[int, ...] = (),
    rhs_contracting_dims: tuple[int, ...] = (),
    lhs_batch_dims: tuple[int, ...] = (),
    rhs_batch_dims: tuple[int, ...] = (),
    operand_precision: tuple[str, ...] = (),
    algorithm: str = "",
) -> Enclosure:
    """Enclose dot, with factors rounded as ``algorithm`` says, or as the peer's budget permits."""
    exactly = partial(
        exact.dot,
        lhs_contracting_dims=lhs_contracting_dims,
        rhs_contracting_dims=rhs_contracting_dims,
        lhs_batch_dims=lhs_batch_dims,
        rhs_batch_dims=rhs_batch_dims,
    )
    terms = math.prod(lhs.shape[axis] for axis in lhs_contracting_dims)
    if terms and shape.element_type.is_float and any(map(_is_open, (lhs, rhs))):
        return _anything(exactly, (lhs, rhs), shape)
    precision = _precision((lhs, rhs), algorithm, operand_precision)
    return _contraction(exactly, (lhs, rhs), shape, terms, precision)


def _is_open(operand: Enclosure) -> bool:
    """Test for a broadcast element that may be anything, so that every sum of products is open."""
    if not operand.element_type.is_float or not operand.low.size or not is_uniform(operand):
        return False
    return bool(operand.low.flat[0] == -np.inf and operand.high.flat[0] == np.inf)


def convolution(
    lhs: Enclosure,
    rhs: Enclosure,
    *indices: Enclosure,
    shape: ArrayShape,
    dim_labels: ConvolutionDimensions,
    window: Window = Window(),  # noqa: B008  (frozen)
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    operand_precision: tuple[str, ...] = (),
    algorithm: str = "",
    convolution_kind: str = "",
    sparsity_config: SparsityConfig | None = None,
) -> Enclosure:
    """Enclose convolution: a sum has as many terms as the kernel has elements per output feature.
    Sparse operands are expanded first, which needs certain indices."""
    del convolution_kind
    operands = [lhs, rhs, *indices]
    for sparse in stored_sparsely(sparsity_config):
        places = operands[sparse.indices]
        if not all_certain(places):
            return anything(shape.dims, shape.element_type)
        fill = partial(exact.with_all_elements, indices=places.low, sparse=sparse)
        operands[sparse.operand] = moved(fill, operands[sparse.operand])
    lhs, rhs = operands[:2]
    exactly = partial(
        exact.convolution,
        dim_labels=dim_labels,
        window=window,
        feature_group_count=feature_group_count,
        batch_group_count=batch_group_count,
    )
    features = rhs.shape[dim_labels.kernel_output_feature]
    terms = math.prod(rhs.shape) // features if features else 0
    precision = _precision((lhs, rhs), algorithm, operand_precision)
    # Zeros and numbers of few bits are not made use of: transforms of Winograd have other addends.
    result = _contraction(exactly, (lhs, rhs), shape, terms, precision, knows=False)
    return _with_padding(result, rhs, dim_labels, window)


def _with_padding(
    result: Enclosure, rhs: Enclosure, labels: ConvolutionDimensions, window: Window
) -> Enclosure:
    """Admit NaN in each sum of an output feature whose kernel has an infinity or NaN: StableHLO
    multiplies the kernel with the zeros in padding and in holes of a dilated lhs, too."""
    is_padded = any(
        d.padding_low > 0 or d.padding_high > 0 or d.base_dilation > 1 for d in window.dimensions
    )
    if not is_padded or result.element_type.is_integer or budget.current() is budget.EXACT:
        return result
    special = ~(np.isfinite(rhs.low) & np.isfinite(rhs.high)) | rhs.nan
    if not is_ever(special):
        return result
    others = tuple(d for d in range(special.ndim) if d != labels.kernel_output_feature)
    along = np.ones(len(result.shape), np.int64)
    along[labels.output_feature] = -1
    features = special.any(axis=others).reshape(along)
    return Enclosure(result.low, result.high, result.nan | features)


def ragged_dot(
    lhs: Enclosure,
    rhs: Enclosure,
    group_sizes: Enclosure,
    *,
    shape: ArrayShape,
    lhs_contracting_dims: tuple[int, ...] = (),
    rhs_contracting_dims: tuple[int, ...] = (),
    lhs_batch_dims: tuple[int, ...] = (),
    rhs_batch_dims: tuple[int, ...] = (),
    lhs_ragged_dims: tuple[int, ...] = (),
    rhs_group_dims: tuple[int, ...] = (),
    operand_precision: tuple[str, ...] = (),
) -> Enclosure:
    """Enclose ragged-dot for certain group sizes; anything for uncertain ones."""
    if not all_certain(group_sizes):
        return anything(shape.dims, shape.element_type)

    def exactly(left: Array, right: Array, *, shape: ArrayShape) -> Array:
        return ragged.ragged_dot(
            left,
            right,
            group_sizes.low,
            shape=shape,
            lhs_contracting_dims=lhs_contracting_dims,
            rhs_contracting_dims=rhs_contracting_dims,
            lhs_batch_dims=lhs_batch_dims,
            rhs_batch_dims=rhs_batch_dims,
            lhs_ragged_dims=lhs_ragged_dims,
            rhs_group_dims=rhs_group_dims,
        )

    terms = math.prod(lhs.shape[axis] for axis in lhs_contracting_dims)
    precision = _precision((lhs, rhs), "", operand_precision)
    return _contraction(exactly, (lhs, rhs), shape, terms, precision)


def _precision(
    operands: Sequence[Enclosure], algorithm: str, precisions: Sequence[str]
) -> Precision:
    types = [component_type(t) if t.is_complex else t for t in (x.element_type for x in operands)]
    return budget.current().factors(algorithm, precisions, types)


def _anything(
    exactly: Callable[..., Array], operands: tuple[Enclosure, Enclosure], shape: ArrayShape
) -> Enclosure:
    """Admit anything as the result of a contraction, of the size that bounded operands give it."""
    sized = shape.is_dynamic
    dims = exactly(*(x.low for x in operands), shape=shape).shape if sized else shape.dims
    return anything(dims, shape.element_type)


def _contraction(
    exactly: Callable[..., Array],
    operands: tuple[Enclosure, Enclosure],
    shape: ArrayShape,
    terms: int,
    precision: Precision,
    *,
    knows: bool = True,
) -> Enclosure:
    """Enclose a contraction of balls: the product of the midpoints in float64, widened by the radii
    and the rounding errors. Neither f64 nor c64 has all numbers of the other, and the language
    leaves open in which of them f64 factors of a c64 result are multiplied; XLA converts them to
    c64 first. It also leaves open which of floats is rounded to an integer that is their sum."""
    element_type = shape.element_type
    is_rounded = element_type.is_inexact
    is_exact = budget.current() is budget.EXACT
    if not (is_rounded or is_exact) and any(x.element_type.is_inexact for x in operands):
        return _anything(exactly, operands, shape)
    if not is_rounded or is_exact:
        # Sums of integers wrap, so they have one value in any order.
        value = exactly(operands[0].low, operands[1].low, shape=shape)
        if not all(map(all_certain, operands)):
            return anything(value.shape, element_type)
        return point(value)

    def product(left: Array, right: Array, added_in: ElementType = F64) -> Array:
        with products_by(lambda lhs, rhs, _: np.matmul(lhs, rhs)):
            return exactly(left, right, shape=replace(shape, element_type=added_in))

    if element_type.is_float:
        precision = without_loss(operands, precision) if knows else precision
        factors = [in_range(x, precision) for x in operands]
        left, right = (ball(flushed(x), precision) for x in factors)
        sums = precision.added_in(element_type)
        known = None
        if knows and _are_held(operands, element_type, sums):
            counting = partial(product, added_in=F32)
            known = of_products((left, right), counting, terms, sums)
        bounds = enclosed_product([(1, left, right)], product, terms, element_type, sums, known)
        return with_specials(bounds, factors, partial(exactly, shape=shape), product)
    component = component_type(element_type)
    factors = [in_range(x, precision) for x in operands]
    bounds = _complex_product(factors, product, terms, precision, component)
    result = with_specials(bounds, factors, None, product)
    if not any(x.element_type.is_float and x.element_type.bits > component.bits for x in operands):
        return result
    lhs, rhs = (convert(x, shape=ArrayShape(element_type, x.shape)) for x in operands)
    return hull(result, _contraction(exactly, (lhs, rhs), shape, terms, precision))


def _complex_product(
    operands: Sequence[Enclosure],
    product: Product,
    terms: int,
    precision: Precision,
    component: ElementType,
) -> Enclosure:
    """Enclose a complex contraction by components, each a sum of twice as many products."""
    (a, b), (c, d) = ([ball(flushed(part), precision) for part in parts(x)] for x in operands)
    sums = precision.added_in(component)
    real = enclosed_product([(1, a, c), (-1, b, d)], product, 2 * terms, component, sums)
    imag = enclosed_product([(1, a, d), (1, b, c)], product, 2 * terms, component, sums)
    return joined(real, imag)


def _are_held(operands: Sequence[Enclosure], element_type: ElementType, sums: ElementType) -> bool:
    """Test for factors that the type of the result has, in which their products are added."""
    types = [x.element_type for x in operands]
    return sums is element_type and all(x.is_float and holds(element_type, x) for x in types)


def enclosed_product(
    pairs: Sequence[Pair],
    product: Product,
    terms: int,
    element_type: ElementType,
    sums: ElementType | None = None,
    known: Addends | None = None,
) -> Enclosure:
    """Enclose a signed sum of contractions of balls (midpoint, radius, largest magnitude), whose
    ``terms`` products are added in any order, in the type ``sums`` (that of the result). ``known``:
    what is known of the products of a single pair."""
    sums = sums or element_type
    # `product` sums in float64, in an order of NumPy's choice, and the ends are rounded.
    count = terms if known is None else known.count
    error = rounding_error(count, sums) + (count + 2) * 2.0**-53
    bounded = partial(bound, product, terms)
    middle, most, radius = np.zeros(()), np.zeros(()), np.zeros(())
    for sign, (a, a_radius, a_most), (b, b_radius, b_most) in pairs:
        middle = middle + sign * product(a, b)
        if known is not None or not is_ever(a_radius):
            most = most + bounded(a_most, b_most)
            radius = radius + (bounded(a_radius, b_most) if is_ever(a_radius) else 0.0)
        else:
            # ``most`` is multiplied by ``error`` in the end: so one product gives the rounding
            # errors and the radius that stems from a's.
            most = most + bounded(a_radius / error + a_most, b_most)
        if is_ever(b_radius):
            radius = radius + bounded(a_most, b_radius)
    arrays = [middle, most, *(np.broadcast_to(x, middle.shape) for x in (radius, error, count))]
    exact_error = np.full((), np.inf)
    if known is not None and not is_ever(radius):
        exact_error = error_of_exact(known, middle, most, sums)
    arrays.append(np.broadcast_to(exact_error, middle.shape))
    widened = partial(_widened, element_type=element_type, sums=sums)
    low, high, overflows = in_blocks_of(widened, arrays)
    result = between(low, high, np.asarray(False))
    if not represents_infinity(element_type):
        # A sum that may be 0 or less, in f8e8m0fnu, or too large is no number of the type.
        lost = is_nan(low) | is_nan(high)
        result = where(lost, anything(result.shape, element_type), result)
    if not is_ever(overflows):
        return result
    # ``most`` exceeds the magnitudes by the share of the radii, so an overflow that it finds is
    # checked by the magnitudes themselves.
    magnitudes = sum(product(a[2], b[2]) for _, a, b in pairs)
    whole = magnitudes + _whole_radius(most, *arrays[2:5])
    overflows = ~(whole <= float(finfo(sums.numpy).max))
    return where(overflows, anything(result.shape, element_type), result)


def _whole_radius(most: Array, radius: Array, error: Array, count: Array) -> Array:
    return np.asarray((radius + error * most) * (1 + (count + 2) * 2.0**-50))


def _widened(
    middle: Array,
    most: Array,
    radius: Array,
    error: Array,
    count: Array,
    exact_error: Array,
    *,
    element_type: ElementType,
    sums: ElementType,
) -> tuple[Array, Array, Array]:
    """Compute the ends of sums, and where one may overflow, from their midpoints, the sums of
    magnitudes (``most``), the radii that stem from the operands, the relative error of ``count``
    addends, and the whole error of sums that are never rounded."""
    info = finfo(sums.numpy)
    radius = np.minimum(_whole_radius(most, radius, error, count), exact_error)
    overflows = ~(most + radius <= float(info.max))
    radius = radius + (count + 1) * float(info.smallest_subnormal)
    radius = np.minimum(radius + flushing_error(count, sums), exact_error)
    is_zero = most == 0
    if element_type is not F64 and is_ever(is_zero):  # whose products could be lost in float64
        radius = np.where(is_zero, 0.0, radius)
    low = rounded_down(middle - radius, element_type)
    high = rounded_up(middle + radius, element_type)
    return *of_either_sign(low, high), overflows


def with_specials(
    result: Enclosure,
    operands: Sequence[Enclosure],
    exactly: Product | None,
    product: Product,
) -> Enclosure:
    """Replace sums that have infinite or NaN factors: by the exact result if these are certain
    (also if subnormals are flushed), as is the sign of their other factors, and no partial sum of
    the finite terms overflows, by NaN if one is certain, else by anything. ``exactly`` is None
    where the language leaves the result open."""
    special = [(~(np.isfinite(x.low) & np.isfinite(x.high)) | x.nan) for x in operands]
    if not any(is_ever(x) for x in special):
        return result

    def meet(one: Array, other: Array) -> Array:
        return product(one.astype(np.float64), other.astype(np.float64)) > 0

    def met(masks: Iterable[Array]) -> Array:
        one, other = masks
        return meet(one, np.ones_like(other)) | meet(np.ones_like(one), other)

    met_special = met(special)
    opened = where(met_special, anything(result.shape, result.element_type), result)
    if exactly is None:
        return opened
    opened = nan_where(met(map(is_nan_alone, operands)), opened)
    # A sum of finite terms that may overflow is enclosed by anything, from -inf to inf: beside
    # another infinity it may become NaN, or an infinity of the other sign.
    known = met_special & ~(np.isinf(result.low) & np.isinf(result.high))
    ends = [flushed(x) for x in operands]
    if not all(map(all_certain, ends)):
        uncertain = [~is_certain(x) for x in ends]
        known &= ~met(one & other for one, other in zip(special, uncertain, strict=True))
        # What an infinity becomes is decided by the sign of what it is multiplied with.
        signs = [(x.low > 0) | (x.high < 0) for x in ends]
        left, right = (one & ~other for one, other in zip(uncertain, signs, strict=True))
        known &= ~(meet(left, special[1]) | meet(special[0], right))
        if not is_ever(known):
            return opened
    value = exactly(operands[0].low, operands[1].low)
    return where(known, Enclosure(value, value, is_nan(value)), opened)
