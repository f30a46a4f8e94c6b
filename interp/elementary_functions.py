"""Elementary functions on values: the sequences of ``hlo.elementary``, then one rounding."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlo.errors import Unsupported
from hlo.types import F64
from interp.conversion import type_of
from interp.elementary_machine import evaluated
from interp.rounding import rounded

Array = np.ndarray[Any, Any]


def elementary(name: str, *operands: Array) -> Array:
    """The function ``name`` of ``operands``, rounded to their type."""
    element_type = type_of(operands[0])
    if element_type.is_complex:
        raise Unsupported(f"{name} of {element_type} is not implemented")
    wide = np.broadcast_arrays(*(operand.astype(np.float64) for operand in operands))
    if element_type is F64:
        return evaluated(f"{name}_f64", *wide)
    return rounded(evaluated(name, *wide), element_type)
