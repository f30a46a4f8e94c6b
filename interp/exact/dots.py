"""Products of float matrices: each result is the exact sum of exact products, rounded once.

In up to three steps, each for the outputs that the one before did not decide:

1. BLAS in float64, where products of two f32 are exact, with the error bound of
   :mod:`interp.exact.sums` and Cauchy-Schwarz for the magnitudes: |a| |b| >= sum|a b|.
2. Both matrices in slices (:mod:`interp.exact.sliced_dots`): the first step for f64, and for data
   such as small integers, whose exact zeros look undecided.
3. All products of one output on the grid of :mod:`interp.exact.accumulator`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from hlo.types import F64, ElementType
from hlo.values import Array
from interp.exact.accumulator import Accumulator, two_sum
from interp.exact.rounding import rounded, rounded_fraction
from interp.exact.sliced_dots import dot_sliced, two_product
from interp.exact.sums import component_type, decided

_UNIT = 1.2e-16
_OUTPUTS = 1 << 24  # results at a time, in float64
_SLICED_OUTPUTS = 1 << 21  # the same for step 2, which keeps a dozen arrays of them
_CHECKED = 1 << 17  # results that are rounded and compared at a time, in the second level cache
_GATHERED = 1 << 21  # products at a time in step 3
_GATHERED_DEPTH = 1 << 12  # of one result
_SAFE = 2.0**400  # products of numbers of this magnitude, and their errors, are float64
_DEPTH = 1 << 10  # products that are added in float64 alone
# Nanoseconds of a product in step 3; of one in the multiplications of step 2, of a result there,
# and of cutting an element of an operand; measured for 1024x768x3072 on two cores.
_COST_GATHERED, _COST_SLICED, _COST_RESULT, _COST_CUT = 15.0, 0.3, 200.0, 60.0
_COST_WORTH_A_LOOK = 1e6


@np.errstate(all="ignore")
def dot_exact(
    lhs: Array, rhs: Array, element_type: ElementType, present: Array | None = None
) -> Array:
    """Multiply lhs[b, m, k] and rhs[b, k, n], accumulated from +0 and rounded once to
    ``element_type``.

    Operands may have any type whose values float64 holds, or be complex; a real result is the real
    part of their product. ``present``, of the shape of lhs, masks the elements that are factors at
    all (an infinity meets no others); the others must be 0.
    """
    if element_type.is_complex:
        return _complex(lhs, rhs, element_type, present)
    if "c" in (lhs.dtype.kind, rhs.dtype.kind):
        return _real_part(lhs, rhs, element_type, present)
    result = rounded(np.zeros((*lhs.shape[:2], rhs.shape[2])), element_type)
    if not result.size or not lhs.size:
        return result
    bounded = _has_exact_products(lhs, rhs) and element_type is not F64
    limit = _OUTPUTS if bounded else _SLICED_OUTPUTS
    limit = limit // 4 if lhs.shape[2] > _DEPTH else limit
    for batch, rows in pieces(lhs.shape, rhs.shape[2], limit):
        left, right = lhs[batch, rows].astype(np.float64), rhs[batch].astype(np.float64)
        shown = None if present is None else present[batch, rows]
        special = _specials(left, right, shown)
        if special is not None:
            left, right = (np.where(np.isfinite(x), x, 0.0) for x in (left, right))
        product = _Product(left, right, element_type, bounded)
        part = product.result
        if special is not None:
            part = np.where(special == 0, part, rounded(special, element_type))
        result[batch, rows] = part
    return result


def _complex(lhs: Array, rhs: Array, element_type: ElementType, present: Array | None) -> Array:
    """Multiply complex matrices: (a + bi)(c + di), where the real part is one exact sum of the
    products ac and -bd, and the imaginary part one of ad and bc."""
    part = component_type(element_type)
    result = np.empty((*lhs.shape[:2], rhs.shape[2]), element_type.numpy)
    result.real = _real_part(lhs, rhs, part, present)
    (a, b), (c, d) = _parts(lhs), _parts(rhs)
    result.imag = _of_both(np.concatenate((a, b), axis=2), (d, c), part, present)
    return result


def _real_part(lhs: Array, rhs: Array, element_type: ElementType, present: Array | None) -> Array:
    (a, b), (c, d) = _parts(lhs), _parts(rhs)
    return _of_both(np.concatenate((a, b), axis=2), (c, -d), element_type, present)


def _of_both(
    lhs: Array, rhs: tuple[Array, Array], element_type: ElementType, present: Array | None
) -> Array:
    both = None if present is None else np.concatenate((present, present), axis=2)
    return dot_exact(lhs, np.concatenate(rhs, axis=1), element_type, both)


def _parts(values: Array) -> tuple[Array, Array]:
    """Split into real and imaginary part, in a type that has zero and negative numbers."""
    if values.dtype.kind == "c":
        return values.real, values.imag
    if values.dtype.kind not in "biu" and values.dtype.itemsize < 4:  # f8e8m0fnu has no zero
        values = values.astype(np.float32)
    if values.dtype.kind == "b":  # nor can a pred be negative
        values = values.astype(np.int8)
    return values, np.zeros_like(values)


def _has_exact_products(lhs: Array, rhs: Array) -> bool:
    """Test whether float64 holds every product: of floats up to f32 and integers up to 16 bits."""
    return all(x.dtype.itemsize <= (2 if x.dtype.kind in "iu" else 4) for x in (lhs, rhs))


def pieces(shape: tuple[int, ...], columns: int, limit: int) -> Iterator[tuple[slice, slice]]:
    """Yield slices of batches and of rows whose operands and results have at most ``limit``
    elements, or are a single row."""
    batch, rows, depth = shape
    row = max(columns, depth)
    batches, height = max(1, limit // (rows * row)), max(1, min(rows, limit // row))
    for first in range(0, batch, batches):
        for top in range(0, rows, height):
            yield slice(first, first + batches), slice(top, min(rows, top + height))


def _specials(lhs: Array, rhs: Array, present: Array | None) -> Array | None:
    """Return the NaN or infinity of results with such factors, 0 for results without; None if all
    factors are finite."""
    if np.isfinite(lhs).all() and np.isfinite(rhs).all():
        return None
    shown = np.ones(lhs.shape) if present is None else present.astype(np.float64)
    nan_beside = shown @ np.isnan(rhs).astype(float) > 0
    is_nan = np.isnan(lhs).any(axis=2, keepdims=True) | nan_beside
    one, other = np.sign(np.nan_to_num(lhs, nan=0.0)), np.sign(np.nan_to_num(rhs, nan=0.0))
    one_inf, other_inf = one * np.isinf(lhs), other * np.isinf(rhs)
    zero_times = (shown * (lhs == 0)) @ np.abs(other_inf)
    is_nan |= zero_times + np.abs(one_inf) @ (rhs == 0).astype(float) > 0
    # Products of 0, 1 and -1 count infinite terms exactly; an infinity of lhs is only in
    # `one_inf`, so that infinity times infinity counts once.
    number = np.abs(one_inf) @ np.abs(other) + np.abs(one - one_inf) @ np.abs(other_inf)
    total = one_inf @ other + (one - one_inf) @ other_inf  # +inf are `total` more than -inf
    is_nan |= (number > np.abs(total)) & (number > 0)
    return np.where(is_nan, np.nan, np.where(number > 0, total * np.inf, 0.0))


class _Product:
    """The product of stacks of finite float64 matrices, computed in three steps (see the module)
    when it is made; ``result`` has it."""

    def __init__(self, lhs: Array, rhs: Array, element_type: ElementType, bounded: bool) -> None:
        self._lhs, self._rhs, self._type = lhs, rhs, element_type
        self.result = np.empty((*lhs.shape[:2], rhs.shape[2]), element_type.numpy)
        if bounded:
            undecided = self._by_bound()
            undecided = self._dense_by_slices(undecided)
        else:
            self.result, certain = dot_sliced(lhs, rhs, element_type)
            undecided = np.argwhere(~certain)
        self._by_accumulation(undecided, bounded)

    def _by_bound(self) -> Array:
        """Do step 1, BLAS with an error bound; return the indices (n, 3) of undecided results."""
        total = self._total()
        total += 0.0  # a sum of -0 only is +0: it starts at +0
        factor = (min(self._lhs.shape[2], _DEPTH) + 8) * _UNIT
        rows = np.sqrt(np.einsum("bmk,bmk->bm", self._lhs, self._lhs))[:, :, None] * factor
        columns = np.sqrt(np.einsum("bkn,bkn->bn", self._rhs, self._rhs))[:, None, :]
        undecided = []
        for piece in pieces((*total.shape[:2], 1), total.shape[2], _CHECKED):
            bound = rows[piece] * columns[piece[0]]
            self.result[piece], certain = decided(total[piece], bound, self._type)
            if not certain.all():
                places = np.argwhere(~certain)
                places[:, :2] += piece[0].start, piece[1].start
                undecided.append(places)
        return np.concatenate(undecided) if undecided else np.empty((0, 3), np.int64)

    def _total(self) -> Array:
        """Multiply in float64. Long sums are split into blocks of _DEPTH, added in double-double,
        so that the error is that of a sum of _DEPTH addends."""
        depth = self._lhs.shape[2]
        total: Array = self._lhs[:, :, :_DEPTH] @ self._rhs[:, :_DEPTH]
        if depth <= _DEPTH:
            return total
        low = np.zeros_like(total)
        for first in range(_DEPTH, depth, _DEPTH):
            block = slice(first, first + _DEPTH)
            total, error = two_sum(total, self._lhs[:, :, block] @ self._rhs[:, block])
            low += error
        return total + low

    def _dense_by_slices(self, undecided: Array) -> Array:
        """Do step 2 for the matrices where it is cheaper than step 3; return the indices that are
        left."""
        batch, _, columns = self.result.shape
        depth = self._lhs.shape[2]
        costs = np.bincount(undecided[:, 0], minlength=batch) * depth * _COST_GATHERED
        left = [undecided[costs[undecided[:, 0]] < _COST_WORTH_A_LOOK]]
        for b in map(int, np.flatnonzero(costs >= _COST_WORTH_A_LOOK)):
            places = undecided[undecided[:, 0] == b]
            rows, across = np.unique(places[:, 1]), np.unique(places[:, 2])
            cost = len(rows) * len(across) * (depth * _COST_SLICED + _COST_RESULT)
            cost += (len(rows) + len(across)) * depth * _COST_CUT
            if costs[b] > cost:
                left.append(self._grid_by_slices(b, rows, across, places))
            else:
                left.append(places)
        return np.concatenate(left)

    def _grid_by_slices(self, b: int, rows: Array, across: Array, places: Array) -> Array:
        columns = self._rhs[b : b + 1, :, across]
        step = max(1, _SLICED_OUTPUTS // len(across))
        is_left = np.zeros(self.result.shape[1:], np.bool_)
        for top in range(0, len(rows), step):
            chosen = rows[top : top + step]
            part, certain = dot_sliced(self._lhs[b : b + 1, chosen], columns, self._type)
            grid = np.ix_(chosen, across)
            self.result[b][grid] = np.where(certain[0], part[0], self.result[b][grid])
            is_left[grid] = ~certain[0]
        return places[is_left[places[:, 1], places[:, 2]]]

    def _by_accumulation(self, undecided: Array, exact_products: bool) -> None:
        """Do step 3: accumulate the products of each undecided result exactly; in whole numbers of
        Python where products of two floats, or their errors, may not be float64."""
        if len(undecided) and not exact_products:
            b, i, j = undecided.T
            is_safe = _are_safe(self._lhs, 2)[b, i] & _are_safe(self._rhs, 1)[b, j]
            self._by_integers(undecided[~is_safe])
            undecided = undecided[is_safe]
        batch, height, depth = self._lhs.shape
        rows = self._lhs.reshape(batch * height, depth)
        columns = self._rhs.transpose(1, 0, 2).reshape(depth, -1)
        length = min(depth, _GATHERED_DEPTH)
        step = max(1, _GATHERED // length)
        for first in range(0, len(undecided), step):
            b, i, j = undecided[first : first + step].T
            row, column = b * height + i, b * self._rhs.shape[2] + j
            sums = Accumulator(b.shape, 2 * depth)
            for left in range(0, depth, length):
                part = slice(left, left + length)
                one, other = rows[row, part], _columns(columns, column, part)
                products = (one * other,) if exact_products else two_product(one, other)
                for addends in products:
                    sums.add(addends, _row_sums)
            self.result[b, i, j] = sums.rounded(self._type)

    def _by_integers(self, places: Array) -> None:
        """Add up the products of each result at ``places`` as whole numbers times a power of
        two."""
        for b, i, j in places:
            (row, row_exponents), (column, column_exponents) = map(
                _integers, (self._lhs[b, i], self._rhs[b, :, j])
            )
            exponents = row_exponents + column_exponents
            least = int(exponents.min())
            factors = zip(row.tolist(), column.tolist(), (exponents - least).tolist())
            total = sum(x * y << shift for x, y, shift in factors)
            exact = Fraction(total) * Fraction(2) ** least
            self.result[b, i, j] = rounded_fraction(exact, self._type)


def _integers(values: Array) -> tuple[Array, Array]:
    """Split finite float64 numbers into whole numbers n (int64) and exponents e: n * 2**e."""
    mantissas, exponents = np.frexp(values)
    return np.ldexp(mantissas, 53).astype(np.int64), exponents.astype(np.int64) - 53


def _columns(matrix: Array, chosen: Array, part: slice) -> Array:
    """Return matrix[part, chosen], transposed, gathering along the axis that is contiguous in
    memory."""
    if matrix.strides[0] < matrix.strides[1]:
        return np.asarray(matrix.T[chosen, part])
    return matrix[part].take(chosen, axis=1).T


def _row_sums(values: Array) -> Array:
    return np.asarray(values.sum(axis=1))


def _are_safe(values: Array, axis: int) -> Array:
    """Test for which rows along an axis all elements are 0 or of a magnitude whose products, and
    the errors of these, are float64."""
    magnitudes = np.abs(values)
    least = np.min(magnitudes, axis=axis, where=magnitudes > 0, initial=math.inf)
    return np.asarray((least > 1 / _SAFE) & (magnitudes.max(axis=axis) < _SAFE))
