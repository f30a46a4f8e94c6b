"""How far do a program's results move when its arguments move by one rounding?

A result that is all rounding noise (the gradient of a parameter that has no influence) moves by its
own size: a comparison with another order of operations must not expect more of it.
"""

from __future__ import annotations

import numpy as np

from hlo.types import element_type_of

Value = np.ndarray | tuple["Value", ...]


def nudged(values: tuple[Value, ...], seed: int) -> tuple[Value, ...]:
    """Each nonzero float, at random, as it is or one step nearer to zero; all else as it is."""
    rng = np.random.default_rng(seed)
    return tuple(_nudged(value, rng) for value in values)


def _nudged(value: Value, rng: np.random.Generator) -> Value:
    if isinstance(value, tuple):
        return tuple(_nudged(element, rng) for element in value)
    if value.dtype.kind == "c":
        parts = _step(value.real, rng), _step(value.imag, rng)
        return np.asarray(parts[0] + 1j * parts[1]).astype(value.dtype)
    element_type = element_type_of(value.dtype)
    return _step(value, rng) if element_type is not None and element_type.is_float else value


def _step(value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    nearer = np.nextafter(value, np.zeros_like(value))
    return np.where(rng.integers(0, 2, value.shape) == 1, nearer, value)
