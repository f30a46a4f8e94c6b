"""Sum as compilers do: in any order, in blocks, as trees, with or without rounded products."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from hlo.attributes import Window
from hlo.types import ElementType
from hlo.values import Array
from interp.algorithms.scatter_updates import ScatterDimensions, targets
from interp.envelope.budget import Budget
from interp.exact.conversion import type_of
from interp.exact.sums import sum_along
from interp.ops.reduction import steps_of
from interp.windows import positions

_SUMMED = tuple(map(np.dtype, (np.float32, np.float64, np.complex64, np.complex128)))


def fused(product: Array, other: Array) -> Array:
    """Compute product + other, both float64, rounded once to f32: to odd in float64 first."""
    # The error of the sum is exact (TwoSum). Rounding to odd in 53 >= 24 + 2 bits makes the next
    # rounding, to f32, that of the exact sum (Boldo and Melquiond, "Emulation of a FMA and
    # correctly rounded sums", IEEE Transactions on Computers, 2008).
    total = product + other
    part = total - product
    error = (product - (total - part)) + (other - part)
    is_even = (total.view(np.int64) & 1) == 0
    inexact = np.isfinite(total) & (error != 0) & is_even
    towards = np.where(error > 0, np.inf, -np.inf)
    return np.where(inexact, np.nextafter(total, towards), total).astype(np.float32)


class Sums:
    """Sums of a legal compiler, in random orders."""

    def __init__(
        self, rng: np.random.Generator, budget: Budget, in_full: Callable[[Any], Any]
    ) -> None:
        """``in_full`` converts a narrow array to f32, with the bits that the compiler kept."""
        self._rng, self._budget, self._in_full = rng, budget, in_full
        self._is_padded = True

    def of(self, name: str, operands: Sequence[Any], attributes: Mapping[str, Any]) -> Array | None:
        """Evaluate an op that is a sum of floats; None for other ops."""
        make = _MADE.get(name)
        if make is None:
            return None
        to_apply = attributes["to_apply"]
        count = 3 if name == "scatter" else 2
        if len(operands) != count or to_apply.monoid != "add":
            return None
        return self._summed(lambda given: make(self, given, attributes), operands)

    def total(self, operand: Array, dimensions: tuple[int, ...]) -> Array:
        """Sum an array along some dimensions."""
        zero = np.zeros((), operand.dtype)
        attributes = {"dimensions": dimensions}
        found = self._summed(lambda given: self._reduced(given, attributes), (operand, zero))
        if found is not None:
            return found
        return sum_along(operand, dimensions, np.zeros(()), type_of(operand))

    def _summed(
        self,
        make: Callable[[Sequence[Array]], Array],
        operands: Sequence[Array],
    ) -> Array | None:
        first = operands[0]
        if first.dtype in _SUMMED:
            return make(operands)
        if first.dtype.itemsize != 2 or not type_of(first).is_float or not self._rng.integers(0, 2):
            return None
        if self._rng.integers(0, 2):  # in the type written, rounded at each step
            return make(operands)
        wide = [self._in_full(x) if x.dtype == first.dtype else x for x in operands]
        return make(wide).astype(first.dtype)

    @contextmanager
    def terms_of(self, name: str) -> Iterator[None]:
        """Set, within a block, whether sums of products may include padding, as those of a dot do
        not."""
        self._is_padded = name != "dot"
        try:
            yield
        finally:
            self._is_padded = True

    def _reduced(self, operands: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
        axes = attributes["dimensions"]
        kept = [axis for axis in range(operands[0].ndim) if axis not in axes]
        rows = operands[0].transpose(*axes, *kept)
        steps = math.prod(operands[0].shape[axis] for axis in axes)
        rows = rows.reshape(steps, *(operands[0].shape[axis] for axis in kept))
        return self._added(operands[1], rows[self._rng.permutation(len(rows))])

    def _added(self, init: Array, rows: Array) -> Array:
        """Add one by one, in a random number of lanes, or as a tree."""
        how = self._rng.integers(0, 3)
        if how == 0 or len(rows) < 2:
            total = np.broadcast_to(init, rows.shape[1:])
            for row in rows:
                total = total + row
            return np.asarray(total)
        if how == 1:
            lanes = int(self._rng.integers(1, len(rows)))
            partial = [self._added(np.zeros((), rows.dtype), rows[n::lanes]) for n in range(lanes)]
            return self._added(init, np.stack(partial))
        while len(rows) > 1:
            half = len(rows) // 2
            pairs = rows[: 2 * half : 2] + rows[1 : 2 * half : 2]
            rows = np.concatenate([pairs, rows[2 * half :]])
        return np.asarray(rows[0] + init)

    def _windows(self, operands: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
        values, init = operands
        window: Window = attributes.get("window", Window())
        dims = tuple(map(positions, window.dimensions, values.shape))
        total = np.broadcast_to(init, dims)
        steps = list(steps_of(window, values.shape))
        for number in self._rng.permutation(len(steps)):
            step = steps[number]
            total = np.where(step.inside, total + values[step.elements], total)
        return np.array(total)

    def _scattered(self, operands: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
        values, indices, updates = operands
        dimensions = ScatterDimensions(
            *(attributes[name] for name in SCATTERS),
            *(attributes.get(name, ()) for name in BATCHING),
        )
        offset, inside = targets(values.shape, indices, updates.shape, dimensions)
        flat, added = np.array(values).reshape(-1), updates[inside]
        order = self._rng.permutation(len(added))
        np.add.at(flat, offset[inside][order], added[order])
        return flat.reshape(values.shape)

    def product(self, lhs: Array, rhs: Array, element_type: ElementType) -> Array | None:
        """Multiply matrices [b, m, k] and [b, k, n], with terms in random order, each rounded or
        not."""
        dtype = element_type.numpy
        if not element_type.is_inexact:
            return None
        if self._is_padded and not all(np.isfinite(x).all() for x in (lhs, rhs)):
            return None  # where padding meets an infinity, or a NaN, it is no factor
        narrow = dtype.itemsize == 2 and element_type.is_float
        if narrow and lhs.dtype == rhs.dtype == dtype and self._rng.integers(0, 2):
            return self._terms(lhs, rhs)
        if narrow and lhs.dtype == rhs.dtype == dtype:
            wide = self._terms(lhs.astype(np.float32), rhs.astype(np.float32))
            return wide.astype(dtype)
        if not (lhs.dtype == rhs.dtype == dtype) or dtype not in _SUMMED:
            return None
        return self._terms(lhs, rhs)

    def _terms(self, lhs: Array, rhs: Array) -> Array:
        total = np.zeros((len(lhs), lhs.shape[1], rhs.shape[2]), lhs.dtype)
        contracts = self._budget.contracts and lhs.dtype == np.float32
        unrounded = contracts and bool(self._rng.integers(0, 2))
        for k in self._rng.permutation(lhs.shape[2]):
            left, right = lhs[:, :, k, None], rhs[:, k, None, :]
            if unrounded:
                exact = left.astype(np.float64) * right.astype(np.float64)
                total = fused(exact, total.astype(np.float64))
            else:
                total = total + left * right
        return total


SCATTERS = (
    *("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims"),
    "index_vector_dim",
)
BATCHING = ("input_batching_dims", "scatter_indices_batching_dims")
_MADE: dict[str, Callable[[Sums, Sequence[Array], Mapping[str, Any]], Array]] = {
    "reduce": Sums._reduced,
    "reduce_window": Sums._windows,
    "scatter": Sums._scattered,
}
