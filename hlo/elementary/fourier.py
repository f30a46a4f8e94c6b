"""Compute the roots of unity (twiddle factors) of the discrete Fourier transform."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from hlo.elementary.double_double import Pair, divide, multiply_value
from hlo.elementary.trigonometric_f64 import sine_and_cosine
from hlo.values import Array

_QUARTER_PI: Pair[Any] = Pair(0.7853981633974483, 3.061616997868383e-17)
_BLOCK = 8192  # angles at a time, for the cache's sake
_KEPT_LENGTH = 1 << 12  # of which the roots are 64 KiB


def roots_of_unity(n: int) -> tuple[Array, Array]:
    """Return cos(2 pi j / n) and sin(2 pi j / n) for j = 0 … n-1, each the nearest float64; no -0.
    Both are read-only.

    Evaluated in double-double on one octant, to which symmetry reduces every angle: 2 pi j / n = g
    pi/2 +- pi/4 p / n with 0 <= p <= n. Only distinct p are evaluated.
    """
    return _kept(n) if n <= _KEPT_LENGTH else _evaluated(n)


def _evaluated(n: int) -> tuple[Array, Array]:
    octant, rest = np.divmod(8 * np.arange(n, dtype=np.int64), n)
    backwards = octant % 2 == 1
    step = math.gcd(8, n)  # divides every p
    part = np.where(backwards, n - rest, rest) // step
    angles = np.arange(0, n + 1, step).astype(np.float64)
    blocks = [_octant(angles[i : i + _BLOCK], n) for i in range(0, angles.size, _BLOCK)]
    cosine, sine = (np.concatenate(column)[part] for column in zip(*blocks, strict=True))
    sine = np.where(backwards, -sine, sine)
    quadrant = (octant + 1) // 2 % 4
    cosines = np.choose(quadrant, [cosine, -sine, -cosine, sine])
    sines = np.choose(quadrant, [sine, cosine, -sine, -cosine])
    roots = cosines + 0.0, sines + 0.0  # -0 + 0 is +0
    for one in roots:
        one.flags.writeable = False
    return roots


# A loop transforms the same lengths in each trip, and each length has those of its factors in it.
_kept = lru_cache(64)(_evaluated)


def _octant(part: Array, n: int) -> tuple[Array, Array]:
    """Evaluate cos and sin of pi/4 part / n."""
    whole = Pair(part * 0.0 + n, part * 0.0)
    sine, cosine = sine_and_cosine(divide(multiply_value(_QUARTER_PI, part), whole))
    return cosine.high, sine.high
