"""Check seeds of random numbers."""

from __future__ import annotations

import operator
from typing import Any

from hlo.errors import ArgumentError

_SEEDS = 1 << 64


def whole_seed(seed: Any) -> int:
    """Return a seed as a number; ArgumentError unless it is a whole one of 64 bits."""
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if not 0 <= number < _SEEDS:
        raise ArgumentError(f"seed={seed!r}: a whole number from 0 to 2**64 - 1")
    return number
