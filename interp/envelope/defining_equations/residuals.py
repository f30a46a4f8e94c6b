"""Compare residuals with what a backward stable algorithm leaves."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hlo.values import Array
from interp.envelope.enclosure import finfo

_THRESHOLD = 30.0


class Residual(NamedTuple):
    """A residual relative to two bounds: factors are legal if ``legal`` is at most 1, and proven
    wrong if ``wrong`` exceeds 1."""

    legal: float
    wrong: float


class Beside(NamedTuple):
    """A residual, and the norm that bounds it. One number that underflows moves an element of it by
    up to ``per_underflow`` times the smallest normal number."""

    residual: Array
    norm: np.longdouble | float
    per_underflow: np.longdouble | float = 1.0


def extended(array: Array) -> Array:
    return array.astype(np.clongdouble if array.dtype.kind == "c" else np.longdouble)


def unit_roundoff(array: Array) -> float:
    return float(finfo(array.real.dtype).eps) / 2


def tiny(array: Array) -> float:
    return float(finfo(array.real.dtype).smallest_normal)


def frobenius(array: Array) -> np.longdouble:
    return np.longdouble(np.sqrt((np.abs(extended(array)) ** 2).sum()))


def in_double(matrix: Array) -> Array:
    return matrix.astype(np.complex128 if matrix.dtype.kind == "c" else np.float64)


def normwise(size: int, operand: Array, *parts: Beside) -> Residual:
    """Compare residuals, each with a norm, to the threshold for the precision of ``operand``. A NaN
    in one of them makes the outcome NaN, which is neither legal nor wrong."""
    relative = []
    for residual, norm, per_underflow in parts:
        lost = size * math.sqrt(residual.size) * tiny(operand) * per_underflow
        left = np.maximum(frobenius(residual) - lost, 0)
        relative.append(left / norm if norm else (np.inf if left > 0 else left))
    legal = float(np.max(relative)) / (_THRESHOLD * size * unit_roundoff(operand))
    return Residual(legal, legal / max(size, 2) ** 2)


def distance_from_unitary(vectors: Array) -> Array:
    return np.asarray(vectors.conj().T @ vectors - np.eye(vectors.shape[1]))
