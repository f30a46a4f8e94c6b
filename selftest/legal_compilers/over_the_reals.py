"""Evaluate chains of elementwise operations over the reals: rounded only when a value is stored.

A value in f32 or narrower keeps beside it what it is in x87's extended precision: 64 bits, and
exponents that nothing here leaves. The next arithmetic operation takes that instead of the rounded
value, by chance; everything else sees what was stored. So ``log(exp(x))`` is x, where exp(x)
overflows, too, as it is for a compiler that rewrites it. Sums and products of 64 bits are rounded
right when they are stored: 64 >= 2 * 24 + 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hlo.module import Module
from hlo.opcodes import MOVES, having
from hlo.types import F32
from hlo.values import Array
from hlo.walk import Op, column, function_name
from interp.evaluator import Evaluation
from interp.exact.conversion import type_of
from interp.exact.rounding import rounded
from interp.values import Value

_MOVES = frozenset(
    map(function_name, having(MOVES) - {"bitcast", "select", "pad", "concatenate", "gather"})
)


def _logistic(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


_REALS: Mapping[str, Callable[..., Any]] = {
    "add": np.add,
    "cbrt": np.cbrt,
    "divide": np.divide,
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "log": np.log,
    "log_plus_one": np.log1p,
    "logistic": _logistic,
    "multiply": np.multiply,
    "negate": np.negative,
    "power": np.power,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sqrt": np.sqrt,
    "subtract": np.subtract,
    "tanh": np.tanh,
}


def has_extended_precision() -> bool:
    """Test whether NumPy's longdouble is x87's 80-bit format."""
    return bool(np.finfo(np.longdouble).nmant == 63)


class OverTheReals:
    """Runs programs with unrounded chains."""

    def __init__(self, seed: int, always: bool = False) -> None:
        """``always``: keep values unrounded wherever possible, not at random."""
        self._rng, self._always = np.random.default_rng(seed), always
        self._kept: dict[int, tuple[Array, Array]] = {}  # what is stored, what it is
        ops = column("interp.ops")
        self._ops: dict[str, Op] = dict(ops)
        for name, function in _REALS.items():
            self._ops[name] = replace(ops[name], function=self._real(function, ops[name].function))
        for name in _MOVES:
            self._ops[name] = replace(ops[name], function=self._moved(ops[name].function))

    def __call__(
        self, module: Module, *arguments: Value, seed: int = 0, fuel: int | None = None
    ) -> Value:
        self._kept.clear()
        return Evaluation(module, fuel, ops=self._ops).result(arguments, seed)

    def _real(
        self, function: Callable[..., Any], exactly: Callable[..., Any]
    ) -> Callable[..., Array]:
        def op(*operands: Array) -> Array:
            element_type = type_of(np.asarray(operands[0]))
            if not element_type.is_float or element_type.bits > F32.bits:
                return np.asarray(exactly(*operands))
            with np.errstate(all="ignore"):
                real = np.asarray(function(*map(self._taken, operands)))
                # One rounding, to odd in float64 first: that of the interpreter is from float64.
                stored = rounded(to_odd(real), element_type)
            self._kept[id(stored)] = stored, real
            return stored

        return op

    def _taken(self, operand: Array) -> Array:
        kept = self._kept.get(id(operand))
        if kept is None or not (self._always or self._rng.integers(0, 4)):
            return np.asarray(operand).astype(np.longdouble)
        return kept[1]

    def _moved(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def op(operand: Any, *others: Any, **attributes: Any) -> Any:
            stored = function(operand, *others, **attributes)
            kept = self._kept.get(id(operand))
            if kept is not None and isinstance(stored, np.ndarray) and not others:
                places = np.arange(operand.size, dtype=np.int64).reshape(operand.shape)
                real = kept[1].reshape(-1)[function(places, **attributes)]
                self._kept[id(stored)] = stored, np.asarray(real)
            return stored

        return op


def to_odd(real: Array) -> Array:
    """Round extended precision to float64 by rounding to odd, which a later rounding turns into the
    rounding of the original."""
    near = np.asarray(real.astype(np.float64))
    away = near.astype(np.longdouble)
    inexact = np.isfinite(near) & (away != real) & ((near.view(np.int64) & 1) == 0)
    towards = np.where(real > away, np.inf, -np.inf)
    return np.where(inexact, np.nextafter(near, towards), near)
