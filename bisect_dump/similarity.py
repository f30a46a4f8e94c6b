"""Estimate how near two arrays are: a heuristic for matching values, never part of a verdict."""

from __future__ import annotations

import numpy as np

from hlo.values import Array
from interp.exact.conversion import type_of

NEAR = 2.0**-6  # relative; a heuristic, so nothing is proven by it


def apart(one: Array, other: Array) -> float:
    """Measure the relative L1 distance: Σ|a − b| / (Σ|a| + Σ|b|) over finite elements, plus the
    fraction of elements that are infinite or NaN in one array only. Integers: the fraction that
    differs. Arrays of different shapes: 1."""
    if one.shape != other.shape or not one.size:
        return float(one.shape != other.shape)
    if not type_of(one).is_inexact:
        return float((one != other).mean())
    pair, finite, lost = _scaled(one, other)
    if one.dtype.itemsize < 2:  # whose neighbours are far from each other
        return float((lost | (finite & (pair[0] != pair[1]))).mean())
    sizes = np.abs(pair[0][finite]).sum() + np.abs(pair[1][finite]).sum()
    apart = float(np.abs(pair[0] - pair[1])[finite].sum() / sizes) if sizes else 0.0
    return apart + float(lost.mean())


def is_far(one: Array, other: Array) -> bool:
    """Return whether two arrays differ by more than roundings are likely to explain."""
    return apart(one, other) > NEAR


def is_near(one: Array, other: Array) -> bool:
    """Return whether two arrays may be one value up to roundings: every difference is small
    relative to the root mean square; infinities, NaNs and integers are equal."""
    if one.shape != other.shape:
        return False
    if not type_of(one).is_inexact:
        return bool((one == other).all())
    pair, finite, lost = _scaled(one, other)
    if lost.any():
        return False
    size = np.sqrt((np.abs(pair[0][finite]) ** 2).mean()) if finite.any() else 0.0
    return bool((np.abs(pair[0] - pair[1])[finite] <= NEAR * size).all())


def _scaled(one: Array, other: Array) -> tuple[tuple[Array, Array], Array, Array]:
    """Convert two arrays to the widest type, divided by their largest magnitude, so that no square
    and no sum overflows; 0 where either is not finite. Also return where both are finite, and where
    one is not and the other differs."""
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    pair = one.astype(wide), other.astype(wide)
    finite = np.isfinite(pair[0]) & np.isfinite(pair[1])
    with np.errstate(invalid="ignore"):
        lost = ~finite & ~((pair[0] == pair[1]) | (np.isnan(pair[0]) & np.isnan(pair[1])))
    numbers = [np.where(finite, x, 0) for x in pair]
    most = max(float(np.abs(part).max(initial=0)) for x in numbers for part in (x.real, x.imag))
    scaled = [x / most for x in numbers] if most else numbers
    return (scaled[0], scaled[1]), finite, lost
