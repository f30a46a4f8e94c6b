"""NumPy as the machine of hlo.elementary: values are float64 arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlo.elementary import evaluate
from hlo.elementary.machine import Condition, Machine

Array = np.ndarray[Any, Any]

_BLOCK = 8192  # elements at a time: a sequence's temporaries then stay in the second-level cache


class NumpyMachine:
    """Lanes are the elements of arrays."""

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
    """``hlo.elementary.evaluate`` on float64 arrays of one shape."""
    shape = operands[0].shape
    flat = [np.ascontiguousarray(operand, np.float64).reshape(-1) for operand in operands]
    result = np.empty(flat[0].size)
    with np.errstate(all="ignore"):
        for start in range(0, result.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            result[block] = evaluate(name, _MACHINE, *(operand[block] for operand in flat))
    return result.reshape(shape)
