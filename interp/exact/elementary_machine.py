"""The NumPy machine of :mod:`hlo.elementary`, whose values are float64 arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hlo.elementary import evaluate, evaluate_complex
from hlo.elementary.machine import Condition, Machine
from hlo.values import Array

_BLOCK = 8192  # elements at a time: a sequence's temporaries then stay in the second-level cache


class NumpyMachine:
    """An abstract machine whose lanes are the elements of arrays."""

    def select(
        self, condition: Condition, on_true: Array | float, on_false: Array | float
    ) -> Array:
        return np.where(np.asarray(condition), on_true, on_false)

    def equal(self, lhs: Array, rhs: Array | float) -> Condition:
        return np.equal(lhs, rhs)

    def absolute(self, x: Array) -> Array:
        return np.absolute(x)

    def sqrt(self, x: Array) -> Array:
        return np.sqrt(x)

    def bits(self, x: Array) -> Array:
        return x.view(np.int64)

    def from_bits(self, word: Any) -> Array:
        return np.asarray(word).view(np.float64)


_MACHINE: Machine[Array] = NumpyMachine()


def evaluated(name: str, *operands: Array) -> Array:
    """Evaluate the sequence of ``name`` on float64 arrays of one shape."""
    return _in_blocks(lambda *parts: (evaluate(name, _MACHINE, *parts),), operands)[0]


def evaluated_complex(name: str, *components: Array) -> list[Array]:
    """Evaluate the complex sequence of ``name`` on float64 arrays of one shape; return real and
    imaginary parts."""
    return _in_blocks(lambda *parts: evaluate_complex(name, _MACHINE, *parts), components)


def _in_blocks(
    function: Callable[..., tuple[Array, ...]], operands: tuple[Array, ...]
) -> list[Array]:
    """Apply an elementwise function block by block; return its result arrays. Empty operands take
    one call, too, as only a call tells how many results there are."""
    shape = operands[0].shape
    flat = [np.ascontiguousarray(operand, np.float64).reshape(-1) for operand in operands]
    size = flat[0].size
    with np.errstate(all="ignore"):
        blocks = [
            function(*(operand[start : start + _BLOCK] for operand in flat))
            for start in range(0, max(size, 1), _BLOCK)
        ]
    return [np.concatenate(parts).reshape(shape) for parts in zip(*blocks, strict=True)]
