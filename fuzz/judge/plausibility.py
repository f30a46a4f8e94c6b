"""Rank wrong results by how readily a reader accepts that they are wrong.

A softmax that gives 0 instead of 1 is a bug to anyone; one that gives 0 instead of 1.3e-38 looks
like a matter of rounding, though both may be the same bug. So a reduction that has a plain failure
does not trade it for one at the ends of a type's range.
"""

from __future__ import annotations

import numpy as np

from fuzz.reducer.numbers import LARGE, SMALL
from hlo.values import Array
from interp.envelope.enclosure import Enclosure, contains
from interp.envelope.trying import Found
from interp.envelope.verdict import in_double

_LEAST, _MOST = 1e-30, 1e30
_PART = 0.1  # of the exact number, at least, is plainly another one
PLAIN, CLEAR, ANY = 2, 1, 0


def plausibility(found: Found | None) -> int:
    """Rank a failure: ``PLAIN`` if an element of everyday magnitude differs by a tenth or more,
    ``CLEAR`` if one of ordinary magnitude does, else ``ANY``. Without numbers, as for a crash, it
    is plain."""
    if found is None or found.mismatch is not None:
        return PLAIN
    outputs = [_rank(one.actual, one.exact, one.legal) for one in found.outputs]
    steps = [_rank(one.actual, one.legal.low, one.legal) for one in found.wrong]
    return max([*outputs, *steps], default=ANY)


def _rank(actual: Array, exact: Array, legal: Enclosure) -> int:
    with np.errstate(all="ignore"):
        wrong = ~np.asarray(contains(legal, actual))
        if not wrong.any():
            return ANY
        one, other = (in_double(array)[wrong] for array in (actual, exact))
        size = np.abs(other)
        is_near = np.abs(one - other) <= _PART * np.maximum(size, np.abs(one))
        differs = np.isfinite(size) & ~(is_near & np.isfinite(one))
        zero = size == 0
        # ``~(a < b)``, and not ``a >= b``, so that a NaN in place of zero counts.
        plain = zero & ~(np.abs(one) < SMALL) | (size >= SMALL) & (size <= LARGE)
        clear = zero & ~(np.abs(one) < _LEAST) | (size >= _LEAST) & (size <= _MOST)
    if (plain & differs).any():
        return PLAIN
    return CLEAR if (clear & differs).any() else ANY
