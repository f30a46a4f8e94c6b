"""Elementary functions on values: the sequences of ``hlo.elementary`` run on NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlo.errors import Unsupported

Array = np.ndarray[Any, Any]


def elementary(name: str, *operands: Array) -> Array:
    """The function ``name`` of ``operands``, correctly rounded to their type."""
    raise Unsupported(f"{name} on {operands[0].dtype} is not implemented")
