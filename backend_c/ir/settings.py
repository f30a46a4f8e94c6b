"""Define the settings of code generation: numerics, and thresholds of the target."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum


class Numerics(StrEnum):
    """Choose between two meanings of instructions on floats.

    ``exact`` rounds the real result of each instruction once. ``fast`` keeps the promise of
    docs/numerics.md: elementary functions within one unit in the last place, sums and dots in any
    order that depends on shapes alone, f16 and bf16 computed in f32.
    """

    FAST = "fast"
    EXACT = "exact"


class Optimize(StrEnum):
    """Choose what the code of microcontrollers is optimised for: time, or size."""

    SPEED = "speed"
    SIZE = "size"


class Simd(StrEnum):
    """Choose how products of bytes are multiplied several at a time.

    By the processor's instructions where the compiler reports them, not at all, or by CMSIS
    functions.
    """

    AUTO = "auto"
    NONE = "none"
    CMSIS = "cmsis"


# The grain size: a nest of fewer element operations, some 20 microseconds, is done sooner by one
# thread than by waking the others.
GRAIN = 1 << 16
# Half a gigabyte of left factors in f64: the patches of a convolution may be many times its input.
MOST_PACKED = 1 << 26
# Bytes: less is copied in the time that following a pointer takes.
LEAST_EXCHANGED = 1024
# Tiles of cuBLASLt have so many rows and columns, and products of 8 such cubes (2**24
# multiplications, less than a microsecond of tensor cores) take no longer than a launch.
LIBRARY_SIDE = 128
# Elements: of fewer, what all of them share of a loop's state takes as long.
LEAST_INTERCHANGED = 256


@dataclass(frozen=True, slots=True)
class Settings:
    """Hold the settings of one compilation.

    ``grain`` is the grain size: loops of at least so many element operations run on several
    threads. ``most_packed`` is how many left factors of a contraction are packed or copied at once.
    Loop state of ``least_exchanged`` bytes or more is double-buffered, if it can be, instead of
    copied. Loops over maps of ``least_interchanged`` elements or more are interchanged: blocks of
    elements outside, trips inside. Products of matrices without a side shorter than
    ``library_side``, and of 8 times the work of such a cube, are a library's, where one is found.

    ``has_blocks``: the target runs blocks of threads that share memory, as CUDA does;
    ``has_tensor_cores``: with the tensor cores of sm_80 (runtime/hlo_block_mma.h).
    ``is_scalar``: it has neither threads nor lanes nor memory to spare, as microcontrollers;
    ``optimize`` is its code's goal, and ``packs_products`` says that it may have instructions for
    several products of bytes at once.
    """

    numerics: Numerics = Numerics.EXACT
    grain: int = GRAIN
    most_packed: int = MOST_PACKED
    least_exchanged: int = LEAST_EXCHANGED
    least_interchanged: int = LEAST_INTERCHANGED
    library_side: int = sys.maxsize
    has_blocks: bool = False
    has_tensor_cores: bool = True
    is_scalar: bool = False
    optimize: Optimize = Optimize.SPEED
    packs_products: bool = False

    @property
    def is_fast(self) -> bool:
        """Return whether the numerics are those of ``fast``."""
        return self.numerics is Numerics.FAST

    @property
    def has_lanes(self) -> bool:
        """Return whether threads compute in vector lanes."""
        return not (self.has_blocks or self.is_scalar)


def threaded(numerics: Numerics) -> Settings:
    """Return the settings for OpenMP: threads that have to be woken."""
    return Settings(numerics)


def launched(numerics: Numerics) -> Settings:
    """Return the settings for CUDA.

    A launch costs the same for one thread as for all, and has fixed addresses, so that buffers
    cannot be exchanged. Few threads that make all trips of a loop are sooner done than a launch for
    each trip.
    """
    return Settings(
        numerics,
        grain=1,
        least_exchanged=sys.maxsize,
        least_interchanged=2,
        has_blocks=True,
    )


def alone(numerics: Numerics) -> Settings:
    """Return the settings for a microcontroller: one thread, no lanes."""
    return Settings(numerics, is_scalar=True)
