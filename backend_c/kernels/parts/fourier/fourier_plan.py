"""Plan Fourier transforms of any length: radices, or a convolution where primes are large."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hlo.elementary import roots_of_unity
from hlo.values import Array

_RADICES = (8, 4, 2, 5, 3)  # those with butterflies of their own
_SMALL = 5  # the largest prime among them
_LARGEST = 31  # prime radices up to here take less than a convolution
# Transforms longer than this leave the L2 cache: they are split in two where they can be.
_LONG = 4096
_LONGEST = 1 << 16  # and a convolution longer than this is not worth its memory


def axes_in_order(fft_type: str, fft_length: tuple[int, ...], rank: int) -> list[int]:
    """List the axes of the transforms in order: last dimension first.

    IRFFT has it last, as all other transforms are of complex numbers there.
    """
    last = rank - 1
    axes = [last - i for i in range(len(fft_length))]
    return [*axes[1:], last] if fft_type == "IRFFT" else axes


def prime_factors(n: int) -> list[int]:
    """Return the prime factors of n >= 1 in ascending order."""
    found, factor = [], 2
    while factor * factor <= n:
        while n % factor == 0:
            found.append(factor)
            n //= factor
        factor += 1
    return found + [n] * (n > 1)


def radices(n: int) -> tuple[int, ...]:
    """Return the radices of the stages of a transform, whose product is n."""
    found: list[int] = []
    for radix in _RADICES:
        while n % radix == 0:
            found.append(radix)
            n //= radix
    # Other primes are combined first, where the roots are few.
    return (*prime_factors(n), *reversed(found))


def is_smooth(n: int) -> bool:
    """Return whether all prime factors are small enough to be radices."""
    return max(prime_factors(n), default=1) <= _LARGEST


def convolution_length(n: int) -> int:
    """Return the least 5-smooth length that holds a convolution of n numbers."""
    # Differences k - j run over -(n - 1) … n - 1, and may not wrap onto each other.
    length = 2 * n - 1
    while max(prime_factors(length), default=1) > _SMALL:
        length += 1
    return length


def halves(n: int, columns: int, lanes: int) -> tuple[int, int] | None:
    """Split a length n1 n2 into two passes, each with the other factor as columns.

    That is done where it is too long for the cache, or where there are too few columns for all
    lanes. None elsewhere, and where there is no split into factors of similar size.
    """
    if n <= _LONG and (columns >= lanes or n < lanes * lanes):
        return None
    larger, first = next(similar_factors(n))
    return (larger, first) if first >= lanes else None


def similar_factors(n: int) -> Iterator[tuple[int, int]]:
    """Yield all pairs of factors of n, the larger one first, the most similar ones first."""
    yield from ((n // d, d) for d in range(math.isqrt(n), 0, -1) if n % d == 0)


def has_plan(n: int) -> bool:
    """Return whether a transform of length n is worth its memory."""
    if is_smooth(n):
        return n <= _LONGEST
    return convolution_length(n) <= _LONGEST


@dataclass(frozen=True)
class Chirp:
    """Hold the factors of Bluestein's algorithm (IEEE TAEE 18(4), 1970), interleaved complex.

    X[k] = c[k] sum over j of (x[j] c[j]) conj(c[k - j]), with c[j] = exp(-pi i j**2 / n): a
    convolution, whose second factor's transform is ``spectrum``, divided by the length.
    """

    length: int
    factors: Array
    spectrum: Array


def chirp(n: int) -> Chirp:
    """Return Bluestein's factors for a forward transform of n numbers."""
    length = convolution_length(n)
    cosines, sines = roots_of_unity(2 * n)
    # exp(-pi i j**2 / n) has period 2 n in j**2: reduced as an integer, the argument is exact.
    squares = np.arange(n, dtype=np.int64) ** 2 % (2 * n)
    factors = cosines[squares] - 1j * sines[squares]
    other = np.zeros(length, np.complex128)
    other[:n] = factors.conj()
    # c[-j] = c[j]: negative differences lie at the end of the cycle.
    other[length - n + 1 :] = factors[:0:-1].conj()
    return Chirp(length, factors.view(np.float64), (np.fft.fft(other) / length).view(np.float64))


def interleaved_roots(n: int) -> Array:
    """Return exp(-2 pi i j / n) for j = 0 … n-1, interleaved."""
    cosines, sines = roots_of_unity(n)
    return np.stack([cosines, -sines], axis=1).reshape(-1)
