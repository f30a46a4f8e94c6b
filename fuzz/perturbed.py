"""Legal compilers, by chance: each instruction errs within its budget, and does what compilers do.

Sums come in any order, products go into sums unrounded, narrow values stay in f32, subnormals are
flushed. Whatever they give, no verdict may call it wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from fuzz.perturbed_sums import Sums, fused
from hlo.module import Module
from hlo.types import F32
from hlo.walk import Op, column, function_name
from interp import random
from interp.conversion import type_of
from interp.envelope.budget import EXACT, ROUNDED, Budget
from interp.envelope.enclosure import outward, rounded_down, rounded_up
from interp.evaluator import Evaluation
from interp.matrix_product import products_by
from interp.values import Value

Array = np.ndarray[Any, Any]

# How the errors of an array's elements go together; 0 is down, 1 none and 2 up.
_DIRECTIONS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Any]] = {
    "by chance": lambda rng, dims: rng.integers(0, 3, dims),
    "all up": lambda rng, dims: np.full(dims, 2),
    "all down": lambda rng, dims: np.full(dims, 0),
    "by turns": lambda rng, dims: (np.arange(math.prod(dims)) % 2 * 2).reshape(dims),
    "each its own": lambda rng, dims: np.full(dims, rng.integers(0, 3)),
}
MODES = tuple(_DIRECTIONS)

_NAMES = {function_name(opcode): opcode for opcode in ROUNDED}
# These keep a value that is wider than its type.
_MOVES = frozenset(
    ("broadcast", "concatenate", "copy", "reshape", "reverse", "slice_", "transpose", "negate")
)
# No library goes below these.
_LEAST = {"exponential_minus_one": -1.0} | dict.fromkeys(
    ("acos", "acosh", "exponential", "logistic", "sqrt"), 0.0
)
_finfo: Any = ml_dtypes.finfo


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a compiler may have in place of a value: one in f32, or a product that is not rounded
    (float64). The value is here so that no other one gets its identity."""

    value: Array
    wide: Array | None = None
    product: Array | None = None


def _narrows(operand: Array, value: Array) -> bool:
    """Whether a conversion rounds: not to a wider type, nor to the same."""
    before, after = type_of(operand), type_of(value)
    return before.is_integer or before.bits > after.bits


class Perturbed:
    """A legal compiler; calling it runs a program, each time by other chances."""

    def __init__(self, budget: Budget, seed: int, mode: str = MODES[0]) -> None:
        self._rng, self._budget = np.random.default_rng(seed), budget
        self._direction = _DIRECTIONS[mode]
        self._sums = Sums(self._rng, budget)
        self._kept: dict[int, _Kept] = {}

    def __call__(
        self, module: Module, *arguments: Value, seed: int = 0, fuel: int | None = None
    ) -> Value:
        evaluation = Evaluation(module, fuel)
        if self._budget is EXACT:
            with np.errstate(all="ignore"), random.seeded(seed):
                return evaluation.run(evaluation.plan(module.entry), *arguments)
        evaluation.ops = {
            name: Op(self._erring(name, op.function), op.given, op.home)
            for name, op in column("interp").items()
        }
        self._kept.clear()
        rounding = products_by(self._sums.product)
        with np.errstate(all="ignore"), random.seeded(seed), rounding:
            return evaluation.run(evaluation.plan(module.entry), *arguments)

    def _chance(self) -> bool:
        return bool(self._rng.integers(0, 2))

    def _erring(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def op(*operands: Any, **attributes: Any) -> Any:
            total = self._sums.of(name, operands, attributes)
            if total is not None:
                return total
            if name in _MOVES:
                return self._moved_wide(function, operands, attributes)
            if name not in _NAMES:
                return function(*operands, **attributes)
            return self._rounded(name, function, operands, attributes)

        return op

    def _rounded(
        self, name: str, function: Callable[..., Any], operands: Sequence[Any], attributes: Any
    ) -> Any:
        if name == "convert" and type_of(operands[0]) is attributes["shape"].element_type:
            return function(*operands, **attributes)
        operands = tuple(map(self._flushed, operands))
        if name == "convert" and (elided := self._elided(operands[0], attributes)) is not None:
            return elided
        one = self._fused(name, operands)
        if one is None:
            one = self._in_f32(name, function, operands, attributes)
        if one is not None:
            return one
        value = np.asarray(function(*operands, **attributes))
        if type_of(value).is_complex:
            return self._moved_complex(name, value)
        if not type_of(value).is_float:
            return value
        wide = self._unrounded(name, value, operands)
        if wide is not None:
            return self._kept_in_both(value, wide)
        if name != "convert" or _narrows(operands[0], value):
            value = np.asarray(self._moved(name, value))
        return np.asarray(self._flushed(value))

    # Wider than the type

    def _unrounded(self, name: str, value: Array, operands: Sequence[Array]) -> Array | None:
        """What may be kept in place of a value: the product, or what was converted."""
        if name == "multiply" and self._budget.contracts and value.dtype == np.float32:
            return np.asarray(np.multiply(*(x.astype(np.float64) for x in operands)))
        if name == "convert" and self._budget.keeps_wide and type_of(value).bits < 32:
            return operands[0] if operands[0].dtype == np.float32 else None
        return None

    def _kept_in_both(self, value: Array, wide: Array) -> Array:
        """A value that is shown rounded up, down or to nearest, and stays what it is: a unit off
        the nearest it would be none of those."""
        exact, element_type = wide.astype(np.float64), type_of(value)
        ends = rounded_down(exact, element_type), value, rounded_up(exact, element_type)
        chosen = np.choose(self._direction(self._rng, value.shape), ends)
        shown = np.where(np.isfinite(value) & (value != 0), chosen, value)
        shown = np.asarray(self._flushed(shown))
        is_product = wide.dtype == np.float64
        kept = {"product": wide} if is_product else {"wide": wide}
        self._kept[id(shown)] = _Kept(shown, **kept)
        return shown

    def _wide(self, value: Any) -> Array | None:
        """What stands for a narrow value in f32, by chance."""
        kept = self._kept.get(id(value))
        return kept.wide if kept is not None and kept.wide is not None and self._chance() else None

    def _elided(self, operand: Array, attributes: Any) -> Array | None:
        """A conversion to f32 of what was there in f32."""
        target = attributes["shape"].element_type
        return self._wide(operand) if target is F32 else None

    def _in_f32(
        self, name: str, function: Callable[..., Any], operands: Sequence[Array], attributes: Any
    ) -> Array | None:
        """A narrow operation on f32, its result in both types."""
        dtype = operands[0].dtype
        narrow = self._budget.keeps_wide and type_of(operands[0]).is_float
        if not narrow or dtype.itemsize != 2 or name == "convert" or not self._chance():
            return None
        taken = [self._wide(x) for x in operands]
        wide = [x.astype(np.float32) if y is None else y for x, y in zip(operands, taken)]
        result = self._flushed(self._moved(name, np.asarray(function(*wide, **attributes))))
        value = np.asarray(result).astype(dtype)
        self._kept[id(value)] = _Kept(value, wide=np.asarray(result))
        return value

    def _moved_wide(
        self, function: Callable[..., Any], operands: Sequence[Any], attributes: Any
    ) -> Any:
        value = function(*operands, **attributes)
        wide = [getattr(self._kept.get(id(x)), "wide", None) for x in operands]
        if all(x is not None for x in wide) and wide and isinstance(value, np.ndarray):
            self._kept[id(value)] = _Kept(value, wide=np.asarray(function(*wide, **attributes)))
        return value

    def _fused(self, name: str, operands: Sequence[Array]) -> Array | None:
        """A sum with a product that was not rounded."""
        if name not in ("add", "subtract") or operands[0].dtype != np.float32:
            return None
        for number in (0, 1):
            kept = self._kept.get(id(operands[number]))
            if kept is not None and kept.product is not None and self._chance():
                other = operands[1 - number].astype(np.float64)
                signs = (1.0, 1.0) if name == "add" else (1.0, -1.0)
                value = fused(kept.product * signs[number], other * signs[1 - number])
                return np.asarray(self._flushed(value))
        return None

    # Errors

    def _moved(self, name: str, value: Array) -> Array:
        error = self._budget.of(_NAMES[name], type_of(value))
        if not error:
            return value
        down, up = outward(value, value, int(error) or 1)
        if name in _LEAST:
            down = np.maximum(down, np.asarray(_LEAST[name]).astype(value.dtype))
        chosen = self._direction(self._rng, value.shape)
        # No library errs where the result is zero.
        errs = np.isfinite(value) & (value != 0)
        return np.where(errs, np.choose(chosen, [down, value, up]), value)

    def _moved_complex(self, name: str, value: Array) -> Array:
        """By units of the magnitude, in each component."""
        if name in ("add", "subtract", "convert", "negate"):
            return value
        part = type_of(value.real)
        units = max(1.0, self._budget.of(_NAMES[name], part)) * float(_finfo(part.numpy).eps) / 2
        error = units * np.abs(value)
        moved = np.array(value)
        for name_ in ("real", "imag"):
            exact = getattr(value, name_)
            chosen = self._direction(self._rng, value.shape) - 1
            other = (exact + chosen * error).astype(exact.dtype)
            usable = np.isfinite(value) & np.isfinite(other)
            setattr(moved, name_, np.where(usable, other, exact))
        return moved

    def _flushed(self, value: Any) -> Any:
        """Of f32; the same array where nothing changes, for it may be kept."""
        if not self._budget.flushes or getattr(value, "dtype", None) != np.float32:
            return value
        small = (np.abs(value) < np.finfo(np.float32).tiny) & (value != 0)
        if not small.any():
            return value
        chosen = small & (self._direction(self._rng, value.shape) != 1)
        return np.where(chosen, value * np.float32(0), value)
