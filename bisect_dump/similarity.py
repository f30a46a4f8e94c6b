"""Estimate how near two arrays are: a heuristic for matching values, never part of a verdict."""

from __future__ import annotations

import numpy as np

from hlo.values import Array

NEAR = 2.0**-6  # relative; a heuristic, so nothing is proven by it


def apart(one: Array, other: Array) -> float:
    """Measure the relative L1 distance: Σ|a − b| / (Σ|a| + Σ|b|) over finite elements, plus the
    fraction of elements that are infinite or NaN in one array only. Integers: the fraction that
    differs. Arrays of different shapes: 1."""
    if one.shape != other.shape or not one.size:
        return float(one.shape != other.shape)
    if one.dtype.kind in "biu" or one.dtype.itemsize < 2:
        return float((one != other).mean())
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    pair = one.astype(wide), other.astype(wide)
    finite = np.isfinite(pair[0]) & np.isfinite(pair[1])
    lost = (~finite & ~((one == other) | (np.isnan(one) & np.isnan(other)))).sum()
    sizes = np.abs(pair[0][finite]).sum() + np.abs(pair[1][finite]).sum()
    with np.errstate(invalid="ignore"):  # of infinities, which are left out
        apart = float(np.abs(pair[0] - pair[1])[finite].sum() / sizes) if sizes else 0.0
    return apart + float(lost) / one.size


def is_far(one: Array, other: Array) -> bool:
    """Return whether two arrays differ by more than roundings are likely to explain."""
    return apart(one, other) > NEAR


def is_near(one: Array, other: Array) -> bool:
    """Return whether two arrays may be one value up to roundings: every difference is small
    relative to the root mean square; infinities, NaNs and integers are equal."""
    if one.shape != other.shape:
        return False
    if one.dtype.kind in "biu":
        return bool((one == other).all())
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    pair = one.astype(wide), other.astype(wide)
    finite = np.isfinite(pair[0]) & np.isfinite(pair[1])
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.sqrt((np.abs(pair[0][finite]) ** 2).mean()) if finite.any() else 0.0
        return bool((np.abs(pair[0] - pair[1])[finite] <= NEAR * size).all())
