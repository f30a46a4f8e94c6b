"""Roots of unity for the discrete Fourier transform."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlo.elementary.double_double import Pair, divide, multiply_value
from hlo.elementary.trigonometric_f64 import sine_and_cosine

_QUARTER_PI: Pair[Any] = Pair(0.7853981633974483, 3.061616997868383e-17)


def roots_of_unity(n: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """cos(2 pi j / n) and sin(2 pi j / n) for j = 0 .. n-1, each the nearest float64; no -0.

    In double-double on an octant: 2 pi j / n = g pi/2 +- pi/4 p / n with 0 <= p <= n.
    """
    octant, rest = np.divmod(8 * np.arange(n, dtype=np.int64), n)
    backwards = octant % 2 == 1
    part = np.where(backwards, n - rest, rest).astype(np.float64)
    whole = Pair(np.full(n, float(n)), np.zeros(n))
    angle = divide(multiply_value(_QUARTER_PI, part), whole)
    sine, cosine = (pair.high for pair in sine_and_cosine(angle))
    sine = np.where(backwards, -sine, sine)
    quadrant = (octant + 1) // 2 % 4
    cosines = np.choose(quadrant, [cosine, -sine, -cosine, sine])
    sines = np.choose(quadrant, [sine, cosine, -sine, -cosine])
    return cosines + 0.0, sines + 0.0
