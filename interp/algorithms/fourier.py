"""Discrete Fourier transforms in float64, by one fixed sequence of operations.

A transform of length n with smallest prime factor p, m = n / p: Y_r is the transform of x[r::p],
and X[k + q m] = Y_0[k] + the products w**(r (k + q m) mod n) Y_r[k] for r = 1, 2, ..., p - 1, added
in this order; w**j = (cos(2 pi j / n), -sin(2 pi j / n)), for the inverse (cos, +sin). A product is
(a c - b d, a d + b c). Every operation is rounded to float64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hlo.elementary import roots_of_unity
from hlo.values import Array


class Parts(NamedTuple):
    """The real and imaginary part of complex numbers, as float64 arrays of one shape."""

    real: Array
    imag: Array


def transformed(parts: Parts, axis: int, inverse: bool) -> Parts:
    """Transform along one dimension; the inverse is not divided by the length."""
    moved = [np.moveaxis(part, axis, 0) for part in parts]
    flat = Parts(*(np.ascontiguousarray(part).reshape(len(part), -1) for part in moved))
    result = _columns(flat, inverse)
    return Parts(*(np.moveaxis(part.reshape(moved[0].shape), 0, axis) for part in result))


def _columns(x: Parts, inverse: bool) -> Parts:
    """Transform the columns of x[n, batch]."""
    length, batch = x.real.shape
    if length <= 1:
        return x
    p = _smallest_factor(length)
    m = length // p
    # Row j of x[m, p * batch] starts with x[j p], then x[j p + 1], ...: all x[r::p] as columns.
    y = _columns(Parts(*(part.reshape(m, p * batch) for part in x)), inverse)
    y = Parts(*(part.reshape(m, p, batch) for part in y))
    cosines, sines = roots_of_unity(length)
    sines = sines if inverse else -sines
    real = np.repeat(y.real[None, :, 0], p, axis=0)
    imag = np.repeat(y.imag[None, :, 0], p, axis=0)
    index = np.arange(length).reshape(p, m, 1)  # k + q m
    for r in range(1, p):
        power = index * r % length
        a, b, c, d = cosines[power], sines[power], y.real[:, r], y.imag[:, r]
        real += a * c - b * d
        imag += a * d + b * c
    return Parts(real.reshape(length, batch), imag.reshape(length, batch))


def _smallest_factor(n: int) -> int:
    return next((p for p in range(2, int(n**0.5) + 1) if n % p == 0), n)


def hermitian(half: Parts, length: int) -> Parts:
    """Complete the ``length`` Fourier coefficients of a real signal, along the last dimension, from
    the first half.

    The imaginary parts of the constant coefficient and of the middle one count as 0.
    """
    middle = length // 2
    imag = half.imag.copy()
    imag[..., 0] = 0
    if length % 2 == 0:
        imag[..., middle] = 0
    mirrored = slice((length - 1) // 2, 0, -1)
    return Parts(
        np.concatenate((half.real, half.real[..., mirrored]), axis=-1),
        np.concatenate((imag, -imag[..., mirrored]), axis=-1),
    )
