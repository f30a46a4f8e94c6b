"""A function of JAX with the types of its arguments, and how these are drawn."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hlo.types import ELEMENT_TYPES

_SPEC = re.compile(r"(\w+)\[([\d,]*)\](?::([a-z]+)(\d*))?")
_WIDE = {"f64", "s64", "u64", "c128"}
Dims = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """``operands`` are ``type[dims]`` or ``type[dims]:kind``: normal floats and complex numbers,
    and integers of the whole range, if no kind is given."""

    name: str
    function: Callable[..., Any]
    operands: tuple[str, ...]

    @property
    def is_wide(self) -> bool:
        """Whether JAX must be told to keep types of 64 bits."""
        return any(spec.partition("[")[0] in _WIDE for spec in self.operands)

    def with_floats(self, element_type: str) -> Function:
        """The function of arguments of another type where they are f32."""
        operands = (re.sub(r"^f32\b", element_type, spec) for spec in self.operands)
        return replace(self, operands=tuple(operands))

    def arguments(self, seed: int, scale: float = 1.0) -> tuple[np.ndarray, ...]:
        """Draw arguments, floats times ``scale``; a seed always gives the same."""
        rng = np.random.default_rng([seed, zlib.crc32(self.name.encode())])
        return tuple(_drawn(spec, rng, scale) for spec in self.operands)


def of(*operands: str) -> Callable[[Callable[..., Any]], Function]:
    """Decorate a function with the types of its arguments."""

    def made(function: Callable[..., Any]) -> Function:
        return Function(function.__name__, function, operands)

    return made


def _drawn(spec: str, rng: np.random.Generator, scale: float) -> np.ndarray:
    match = _SPEC.fullmatch(spec)
    assert match, f"no operand: {spec}"
    name, sizes, kind, number = match.groups()
    dims = tuple(map(int, sizes.split(","))) if sizes else ()
    element_type = ELEMENT_TYPES[name]
    if kind is None:
        kind = "normal" if element_type.is_inexact else "whole"
    found = _KINDS[kind](rng, dims, int(number or 0))
    if element_type.is_complex:
        found = found + 1j * _KINDS[kind](rng, dims, int(number or 0))
    if kind == "whole" and element_type.is_integer:
        return (
            np.frombuffer(rng.bytes(found.size * 8), np.uint64)
            .reshape(dims)
            .astype(element_type.numpy)
        )
    if element_type.is_inexact:
        found = found * scale
    with np.errstate(over="ignore"):
        return np.asarray(found).astype(element_type.numpy)


def _definite(rng: np.random.Generator, dims: Dims, number: int) -> np.ndarray:
    """Draw positive definite matrices: x xᵀ / n + 1."""
    x = rng.standard_normal(dims)
    return x @ np.swapaxes(x, -1, -2) / dims[-1] + np.eye(dims[-1])


_KINDS: dict[str, Callable[[np.random.Generator, Dims, int], np.ndarray]] = {
    "normal": lambda rng, dims, number: rng.standard_normal(dims),
    "scaled": lambda rng, dims, number: rng.standard_normal(dims) * number,
    "hundredths": lambda rng, dims, number: rng.standard_normal(dims) / 100,
    "positive": lambda rng, dims, number: rng.uniform(0.1, 4, dims),
    "magnitude": lambda rng, dims, number: np.abs(rng.standard_normal(dims)) + 1e-3,
    "fraction": lambda rng, dims, number: rng.uniform(0, 1, dims),
    "unit": lambda rng, dims, number: rng.uniform(-1, 1, dims),
    "below": lambda rng, dims, number: rng.integers(0, number, dims),
    "digits": lambda rng, dims, number: rng.integers(-9, 10, dims),
    "definite": _definite,
    "ascending": lambda rng, dims, number: np.sort(rng.standard_normal(dims), axis=-1),
    "grid": lambda rng, dims, number: np.linspace(0, 1, dims[0]),
    "angles": lambda rng, dims, number: rng.uniform(0, 2 * np.pi, dims),
    "whole": lambda rng, dims, number: rng.integers(0, 2, dims),
}
