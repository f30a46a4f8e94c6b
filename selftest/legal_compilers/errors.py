"""Errors of single results within a budget, at random: roundings, flushed subnormals, signs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from hlo.opcodes import ROUNDS, having
from hlo.values import Array
from hlo.walk import function_name
from interp.envelope.budget import Budget
from interp.envelope.enclosure import outward
from interp.exact.conversion import type_of
from interp.ops.elementwise import complex_

# How the errors of an array's elements go together; 0 is down, 1 none and 2 up.
_DIRECTIONS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Any]] = {
    "by chance": lambda rng, dims: rng.integers(0, 3, dims),
    "all up": lambda rng, dims: np.full(dims, 2),
    "all down": lambda rng, dims: np.full(dims, 0),
    "by turns": lambda rng, dims: (np.arange(math.prod(dims)) % 2 * 2).reshape(dims),
    "each its own": lambda rng, dims: np.full(dims, rng.integers(0, 3)),
}
MODES = tuple(_DIRECTIONS)

NAMES = {function_name(opcode): opcode for opcode in having(ROUNDS)}
# No library goes below these.
_LEAST = {"exponential_minus_one": -1.0} | dict.fromkeys(
    ("acos", "acosh", "exponential", "logistic", "sqrt"), 0.0
)
_finfo: Any = ml_dtypes.finfo


class Errors:
    """The errors of one compiler: its budget, and how they correlate."""

    def __init__(self, rng: np.random.Generator, budget: Budget, mode: str) -> None:
        # What is kept wide, or goes into a sum unrounded, is the compiler's affair.
        self._rng, self._budget = rng, replace(budget, keeps_wide=False, contracts=False)
        self._direction = _DIRECTIONS[mode]

    def moved(self, name: str, value: Array) -> Array:
        error = self._budget.of(NAMES[name], type_of(value))
        if not error:
            return value
        down, up = outward(value, value, int(error) or 1)
        if name in _LEAST:
            down = np.maximum(down, np.asarray(_LEAST[name]).astype(value.dtype))
        chosen = self._direction(self._rng, value.shape)
        # No library errs where the result is zero.
        errs = np.isfinite(value) & (value != 0)
        return np.where(errs, np.choose(chosen, [down, value, up]), value)

    def moved_complex(self, name: str, value: Array) -> Array:
        """Move each component by units relative to the magnitude."""
        if name in ("add", "subtract", "convert", "negate"):
            return value
        part = type_of(value.real)
        units = max(1.0, self._budget.of(NAMES[name], part)) * float(_finfo(part.numpy).eps) / 2
        error = units * np.abs(value)
        moved = np.array(value)
        for name_ in ("real", "imag"):
            exact = getattr(value, name_)
            chosen = self._direction(self._rng, value.shape) - 1
            other = (exact + chosen * error).astype(exact.dtype)
            usable = np.isfinite(value) & np.isfinite(other)
            setattr(moved, name_, np.where(usable, other, exact))
        return moved

    def finished(self, name: str, value: Any) -> Any:
        """Flush subnormals and choose the signs of zeros of an arithmetic result."""
        flushed = self.flushed(value)
        return flushed if name in _LEAST else self.signed(flushed)

    def flushed(self, value: Any) -> Any:
        """Flush subnormals; return the array itself where nothing changes, for it may be kept."""
        if not self._budget.flushes or not _has_subnormals(value):
            return value
        if value.dtype.kind == "c":
            parts = self.flushed(value.real), self.flushed(value.imag)
            return complex_(*parts)
        if not self._budget.may_flush(type_of(value)):
            return value
        small = (np.abs(value) < _finfo(value.dtype).smallest_normal) & (value != 0)
        if not small.any():
            return value
        chosen = small & (self._direction(self._rng, value.shape) != 1)
        return np.asarray(np.where(chosen, value * np.zeros((), value.dtype), value))

    def signed(self, value: Any) -> Any:
        """Give zeros and NaNs either sign, at random; return the same array where nothing
        changes."""
        if not isinstance(value, np.ndarray) or not _has_subnormals(value):
            return value
        if value.dtype.kind == "c":
            return complex_(self.signed(value.real), self.signed(value.imag))
        either = (value == 0) | np.isnan(value)
        if not either.any() or not self._rng.integers(0, 2):
            return value
        turned = either & (self._direction(self._rng, value.shape) != 1)
        return np.where(turned, -value, value)


def _has_subnormals(value: Any) -> bool:
    dtype = getattr(value, "dtype", None)
    if dtype is None or dtype.itemsize < 2:
        return False
    element_type = type_of(value)
    return element_type.is_inexact


def without_subnormals(value: Array) -> Array:
    """Replace subnormals by zeros, as hardware with denormals-are-zero reads them."""
    if not _has_subnormals(value) or value.dtype.kind == "c":
        return value
    small = np.abs(value) < _finfo(value.dtype).smallest_normal
    return np.where(small, value * np.zeros((), value.dtype), value)
