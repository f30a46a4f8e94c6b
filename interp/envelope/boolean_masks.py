"""Ask masks, arrays of truth values, whether they are set anywhere, and join them.

Of few elements it is quicker to count those that are set, 0.2 µs, than to ask for any, 0.9 µs.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from hlo.values import Array

_FEW = 1 << 12  # elements: of more the count is no quicker


def is_ever(mask: Array) -> bool:
    """Test whether a mask is set anywhere: of one element that is broadcast, by that one, which
    takes a hundredth of the time."""
    if mask.size <= _FEW:
        return bool(np.count_nonzero(mask))
    if not any(mask.strides):
        return bool(mask[(0,) * mask.ndim])
    return bool(mask.any())


def is_always(mask: Array) -> bool:
    """Test whether a mask is set everywhere."""
    size = mask.size
    return bool(np.count_nonzero(mask) == size if size <= _FEW else mask.all())


def either(*masks: Array) -> Array:
    """Join masks of one shape by or. Those that are a broadcast False are left out: NumPy takes ten
    times as long for them as for others."""
    found = masks[0]
    for mask in masks[1:]:
        if is_never(found):
            found = mask
        elif not is_never(mask):
            found = found | mask
    return found


def is_never(mask: Array) -> bool:
    """Test for a broadcast False."""
    return not any(mask.strides) and not is_ever(mask)


@lru_cache(1 << 10)
def never(shape: tuple[int, ...]) -> Array:
    """Return a mask that is set nowhere, a broadcast False."""
    return np.broadcast_to(np.False_, shape)


@lru_cache(1 << 10)
def always(shape: tuple[int, ...]) -> Array:
    """Return a mask that is set everywhere, a broadcast True."""
    return np.broadcast_to(np.True_, shape)
