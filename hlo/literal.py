"""Represent constants."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlo.types import ArrayShape, Shape


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Literal:
    """A constant. ``value`` is a read-only array, a tuple of literals, or None where the text
    elided it (``{...}``)."""

    shape: Shape
    value: np.ndarray | tuple[Literal, ...] | None

    def __post_init__(self) -> None:
        # A view, as the array itself may be its maker's to write on.
        if isinstance(self.value, np.ndarray) and self.value.flags.writeable:
            view = self.value.view()
            view.flags.writeable = False
            object.__setattr__(self, "value", view)

    def __eq__(self, other: object) -> bool:
        """Compare shapes and bits (a NaN equals the same NaN; -0 differs from 0)."""
        if not isinstance(other, Literal) or self.shape != other.shape:
            return False
        if isinstance(self.value, np.ndarray) and isinstance(other.value, np.ndarray):
            return self.value.tobytes() == other.value.tobytes()
        # An array is equal to an array alone: NumPy would compare None with each of its elements.
        if isinstance(self.value, np.ndarray) or isinstance(other.value, np.ndarray):
            return False
        return self.value == other.value

    def __repr__(self) -> str:
        is_short = isinstance(self.value, np.ndarray) and self.value.size <= 8
        value = self.value.tolist() if is_short else "…"  # type: ignore[union-attr]
        return f"Literal({self.shape}, {'{...}' if self.is_elided else value})"

    def __hash__(self) -> int:
        if isinstance(self.value, np.ndarray):
            return hash((self.shape, self.value.tobytes()))
        return hash((self.shape, self.value))

    @property
    def is_elided(self) -> bool:
        if isinstance(self.value, tuple):
            return any(element.is_elided for element in self.value)
        return self.value is None and isinstance(self.shape, ArrayShape)
