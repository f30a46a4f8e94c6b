"""Are the interpreter's result and XLA's the same, up to what XLA's errors may be?"""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from against_jax.case import Bound
from hlo.types import element_type_of


def complaints(ours: list[np.ndarray], theirs: list[np.ndarray], bound: Bound) -> Iterator[str]:
    """One line for each output where they differ by more than the bound."""
    if len(ours) != len(theirs):
        yield f"{len(ours)} outputs against {len(theirs)}"
        return
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            yield f"output {number}: {one.dtype}{one.shape} against {other.dtype}{other.shape}"
        elif not (wrong := ~close(one, other, bound)).any():
            continue
        else:
            first = tuple(int(i) for i in np.argwhere(wrong)[0])
            yield (
                f"output {number}: {wrong.sum()} of {wrong.size} differ, first at {first}:"
                f" ours {one[first]!r}, XLA's {other[first]!r}"
            )


def close(ours: np.ndarray, theirs: np.ndarray, bound: Bound) -> np.ndarray:
    """For each element, whether they are as equal as they must be."""
    kind = element_type_of(ours.dtype)
    assert kind is not None
    if kind.is_complex:
        return _complex_close(ours, theirs, bound)
    if not kind.is_float:
        return np.asarray(ours == theirs)
    return _float_close(ours, theirs, bound)


def _float_close(ours: np.ndarray, theirs: np.ndarray, bound: Bound) -> np.ndarray:
    info = ml_dtypes.finfo(ours.dtype)
    one, other = ours.astype(np.float64), theirs.astype(np.float64)
    with np.errstate(all="ignore"):
        same = (np.isnan(one) & np.isnan(other)) | (
            (one == other) & (np.signbit(one) == np.signbit(other))
        )
        if bound.ulps or bound.scale:
            same |= one == other  # the sign of a zero is lost where results are not exact
            allowed = _allowed(one, float(info.eps), bound)
            same |= np.abs(one - other) <= allowed
            overflow = np.abs(one) + allowed > float(info.max)
            same |= overflow & np.isinf(other) & (np.signbit(one) == np.signbit(other))
        if info.bits >= 16 and info.dtype != np.float16:  # XLA:CPU flushes what it computes to zero
            flushed = float(info.tiny)
            same |= (np.abs(one) <= flushed) & (np.abs(other) <= flushed)
        if info.dtype.name == "float8_e8m0fnu":  # the smallest is subnormal in f32, and 0 is a NaN
            same |= (one <= 2.0**-126) & np.isnan(other)
    return np.asarray(same)


def _complex_close(ours: np.ndarray, theirs: np.ndarray, bound: Bound) -> np.ndarray:
    parts = _float_close(ours.real, theirs.real, bound) & _float_close(
        ours.imag, theirs.imag, bound
    )
    if not bound.ulps and not bound.scale:
        return parts
    # One infinite part makes the number infinite, one NaN part (and no infinite one) a NaN.
    with np.errstate(all="ignore"):
        infinite = np.isinf(ours) & np.isinf(theirs)
        not_a_number = np.isnan(ours) & np.isnan(theirs) & ~np.isinf(ours) & ~np.isinf(theirs)
        eps = float(np.finfo(ours.dtype).eps)
        near = np.abs(ours - theirs) <= _allowed(np.abs(ours), eps, bound)
    return np.asarray(parts | infinite | not_a_number | near)


def _allowed(values: np.ndarray, eps: float, bound: Bound) -> np.ndarray:
    magnitudes = np.abs(values)
    finite = magnitudes[np.isfinite(magnitudes)]
    largest = float(finite.max()) if finite.size else 0.0
    return np.asarray(eps * (bound.ulps * magnitudes + bound.scale * largest))
