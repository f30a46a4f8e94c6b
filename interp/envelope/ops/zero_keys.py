"""Sort by zeros of open signs: a comparator that finds -0 and +0 level does not care."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlo.values import Array
from hlo.walk import Callee
from interp.envelope.boolean_masks import is_ever
from interp.envelope.enclosure import Enclosure


def is_a_zero(key: Enclosure) -> Array:
    """Test which keys are zeros, of either sign or of one."""
    return np.asarray((key.low == 0) & (key.high == 0) & ~key.nan)


def levels_zeros(
    rows: Sequence[Enclosure], read: Sequence[int], key: Enclosure, comparator: Callee[Any]
) -> bool:
    """Test whether a comparator of one operand finds the same of zeros of either sign, beside each
    key and beside one another."""
    if len(read) != 1 or not key.element_type.is_float or not is_ever(is_a_zero(key)):
        return False
    zero = np.zeros((), key.low.dtype)
    signs = np.array([-zero, zero])
    others = np.concatenate([*(end.reshape(-1) for end in key.ends()), signs])

    def found(sign: Array, *, is_first: bool) -> Array:
        pair = (np.broadcast_to(sign, others.shape), others)
        sides = [
            pair
            if is_first
            else pair[::-1]
            if number == read[0]
            else (np.zeros(others.shape, row.low.dtype),) * 2
            for number, row in enumerate(rows)
        ]
        return np.asarray(comparator(*(side for pair in sides for side in pair)))

    return all(
        bool((found(signs[0], is_first=order) == found(signs[1], is_first=order)).all())
        for order in (True, False)
    )
