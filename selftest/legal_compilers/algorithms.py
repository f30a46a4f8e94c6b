"""Compute transforms, factors, folds and sorts by other legal algorithms, chosen at random."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hlo.attributes import Window
from hlo.types import BF16, F16
from hlo.values import Array
from hlo.walk import Callee
from interp.algorithms.scatter_updates import ScatterDimensions, targets
from interp.exact.conversion import type_of
from interp.exact.rounding import rounded
from interp.ops.batch_norm import BatchNorm, Instructions
from interp.ops.reduction import steps_of
from interp.windows import positions
from selftest.legal_compilers.sums import BATCHING, SCATTERS, Sums

Made = Callable[..., Any]
_LIBRARY = tuple(map(np.dtype, (np.float32, np.float64, np.complex64, np.complex128)))
_IN_MEMORY = (*_LIBRARY, F16.numpy, BF16.numpy)  # each step is rounded to the type
_TRANSFORMS: dict[str, Callable[..., Array]] = {
    "FFT": np.fft.fftn,
    "IFFT": np.fft.ifftn,
    "RFFT": np.fft.rfftn,
    "IRFFT": np.fft.irfftn,
}


class _InOrder:
    """A computation without a monoid, so that folds apply it step by step."""

    monoid = None

    def __init__(self, callee: Callee[Any]) -> None:
        self._callee = callee

    def __call__(self, *arguments: Any) -> Any:
        return self._callee(*arguments)


class Algorithms:
    """Alternative algorithms of one compiler; ``op(name, *operands)`` evaluates an instruction of
    it."""

    def __init__(self, rng: np.random.Generator, sums: Sums, op: Callable[..., Any]) -> None:
        self._rng = rng
        self._instructions: Instructions[Array] = Instructions(
            add=partial(op, "add"),
            subtract=partial(op, "subtract"),
            multiply=partial(op, "multiply"),
            divide=partial(op, "divide"),
            rsqrt=partial(op, "rsqrt"),
            constant=_constant,
            total=sums.total,
            reshape=lambda x, dims: x.reshape(dims),
        )

    def of(
        self,
        name: str,
        function: Made,
        operands: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> Any:
        """Evaluate an op by another algorithm, if there is one, at random; None otherwise."""
        make = _MADE.get(name)
        if make is None or not self._rng.integers(0, 4):
            return None
        return make(self, function, operands, attributes)

    def _transformed(
        self, function: Made, operands: Sequence[Array], attributes: Mapping[str, Any]
    ) -> Array | None:
        (operand,), length = operands, attributes["fft_length"]
        if not operand.size or 0 in length or operand.dtype not in _LIBRARY:
            return None
        axes = tuple(range(-len(length), 0))
        return _TRANSFORMS[attributes["fft_type"]](operand, s=length, axes=axes)

    def _factored(
        self, function: Made, operands: Sequence[Array], attributes: Mapping[str, Any]
    ) -> Array | None:
        (operand,), lower = operands, attributes.get("lower", False)
        if operand.dtype not in _IN_MEMORY:
            return None
        matrices = operand if lower else operand.swapaxes(-1, -2).conj()
        is_narrow = operand.dtype not in _LIBRARY
        factor = _by_columns(matrices) if is_narrow else _by_library(matrices)
        if factor is None:
            return None
        return factor if lower else factor.swapaxes(-1, -2).conj()

    def _solved(
        self, function: Made, operands: Sequence[Array], attributes: Mapping[str, Any]
    ) -> Array | None:
        matrices, right = operands
        if matrices.dtype not in _IN_MEMORY or not (np.isfinite(matrices).all() and right.size):
            return None
        # All are finite: the mask of the diagonal below multiplies by 0, and 0 * inf is NaN.
        triangle = np.tril(matrices) if attributes.get("lower", False) else np.triu(matrices)
        if attributes.get("unit_diagonal", False):
            triangle = triangle - triangle * np.eye(triangle.shape[-1]) + np.eye(len(triangle.T))
        how = attributes.get("transpose_a", "")
        if how in ("TRANSPOSE", "ADJOINT"):
            triangle = triangle.swapaxes(-1, -2)
            triangle = triangle.conj() if how == "ADJOINT" else triangle
        triangle, is_left = triangle.astype(right.dtype), attributes.get("left_side", False)
        if is_left:
            return self._substituted(triangle, right)
        turned = self._substituted(triangle.swapaxes(-1, -2), right.swapaxes(-1, -2))
        return turned.swapaxes(-1, -2)

    def _substituted(self, triangle: Array, right: Array) -> Array:
        """Solve triangular systems column by column, at random by reciprocals of the diagonal."""
        rest, size = np.array(right), triangle.shape[-1]
        # A diagonal matrix is of both kinds, and solved in either order.
        is_lower = not np.triu(triangle, 1).any()
        by_reciprocals = self._rng.integers(0, 2)
        result = np.zeros_like(rest)
        for row in range(size) if is_lower else reversed(range(size)):
            pivot = triangle[..., row, row, None]
            above = rest[..., row, :]
            one = above * (np.ones((), above.dtype) / pivot) if by_reciprocals else above / pivot
            result[..., row, :] = one
            rest = rest - triangle[..., :, row, None] * one[..., None, :]
        return result

    def _normalised(self, which: str) -> Made:
        def made(_: Made, operands: Sequence[Array], attributes: Mapping[str, Any]) -> Any:
            op = BatchNorm(self._instructions, operands[0].shape, **attributes)
            return getattr(op, which)(*operands)

        return made

    def _sorted(
        self, function: Made, operands: Sequence[Array], attributes: Mapping[str, Any]
    ) -> Any:
        """Sort with equal elements in any order."""
        if attributes.get("is_stable", False):
            return None
        (axis,) = attributes["dimensions"]
        order = self._rng.permutation(operands[0].shape[axis])
        return function(*(x.take(order, axis) for x in operands), **attributes)

    def _folded(
        self, function: Made, operands: Sequence[Array], attributes: Mapping[str, Any]
    ) -> Any:
        """Fold the elements in random order, at random with the operands of the computation
        swapped."""
        arity, axes = len(operands) // 2, attributes["dimensions"]
        inputs, inits = operands[:arity], operands[arity:]
        kept = [axis for axis in range(inputs[0].ndim) if axis not in axes]
        dims = [inputs[0].shape[axis] for axis in kept]
        steps = math.prod(inputs[0].shape[axis] for axis in axes)
        order = self._rng.permutation(steps)
        rows = [x.transpose(*axes, *kept).reshape(steps, *dims)[order] for x in inputs]
        to_apply = attributes["to_apply"]
        if to_apply.monoid is None and self._rng.integers(0, 2):
            to_apply = replace(to_apply, call=_swapped(to_apply.call))
        return function(*rows, *inits, dimensions=(0,), to_apply=to_apply)

    def _windows(
        self, function: Made, operands: Sequence[Array], attributes: Mapping[str, Any]
    ) -> Any:
        """Fold the elements of each window in random order; None for sums, which are done
        elsewhere."""
        arity, window = len(operands) // 2, attributes.get("window", Window())
        inputs, to_apply = operands[:arity], attributes["to_apply"]
        if to_apply.monoid == "add":
            return None
        dims = tuple(map(positions, window.dimensions, inputs[0].shape))
        state = tuple(np.broadcast_to(init, dims) for init in operands[arity:])
        steps = list(steps_of(window, inputs[0].shape))
        for number in self._rng.permutation(len(steps)):
            step = steps[number]
            made = to_apply(*state, *(x[step.elements] for x in inputs))
            after = made if isinstance(made, tuple) else (made,)
            state = tuple(np.where(step.inside, *pair) for pair in zip(after, state, strict=True))
        return state if arity > 1 else np.asarray(state[0])

    def _selected(
        self, function: Made, operands: Sequence[Array], attributes: Mapping[str, Any]
    ) -> Any:
        """Evaluate select-and-scatter with sums rounded at each step."""
        return function(*operands, **{**attributes, "scatter": _InOrder(attributes["scatter"])})

    def _scattered(
        self, function: Made, operands: Sequence[Array], attributes: Mapping[str, Any]
    ) -> Array | None:
        """Apply replacing updates in random order."""
        computation = attributes["to_apply"].computation
        parameters = computation.parameters
        if len(operands) != 3 or len(parameters) != 2 or computation.root != parameters[1].name:
            return None
        values, indices, updates = operands
        dimensions = ScatterDimensions(
            *(attributes[name] for name in SCATTERS),
            *(attributes.get(name, ()) for name in BATCHING),
        )
        offset, inside = targets(values.shape, indices, updates.shape, dimensions)
        flat, given = np.array(values).reshape(-1), updates[inside]
        order = self._rng.permutation(len(given))
        flat[offset[inside][order]] = given[order]
        return flat.reshape(values.shape)


def _constant(value: float, operand: Array) -> Array:
    return rounded(np.asarray(value, np.float64), type_of(operand))


def _swapped(call: Callable[..., Any]) -> Callable[..., Any]:
    def applied(*arguments: Any) -> Any:
        half = len(arguments) // 2
        return call(*arguments[half:], *arguments[:half])

    return applied


def _by_library(matrices: Array) -> Array | None:
    try:
        return np.asarray(np.linalg.cholesky(matrices))
    except np.linalg.LinAlgError:
        return None


def _by_columns(matrices: Array) -> Array | None:
    """Compute Cholesky factors by the right-looking algorithm: each column updates the rest of the
    matrix. None if a pivot is not positive."""
    factor, rest = np.zeros_like(matrices), np.array(matrices)
    for n in range(matrices.shape[-1]):
        if not (rest[..., n, n] > 0).all():
            return None
        column = rest[..., n:, n] / np.sqrt(rest[..., n, n, None])
        factor[..., n:, n] = column
        rest[..., n:, n:] -= column[..., :, None] * column[..., None, :]
    return factor


def _batch_norm(which: str) -> Callable[..., Any]:
    return lambda algorithms, *given: algorithms._normalised(which)(*given)


_MADE: dict[str, Callable[..., Any]] = {
    "batch_norm_grad": _batch_norm("grad"),
    "batch_norm_inference": _batch_norm("inference"),
    "batch_norm_training": _batch_norm("training"),
    "cholesky": Algorithms._factored,
    "fft": Algorithms._transformed,
    "reduce": Algorithms._folded,
    "reduce_window": Algorithms._windows,
    "scatter": Algorithms._scattered,
    "select_and_scatter": Algorithms._selected,
    "sort": Algorithms._sorted,
    "triangular_solve": Algorithms._solved,
}
