"""Measure the machine's peak rates: bytes and operations a second.

``python -m backend_c.native.machine_limits [--quick]`` compiles ``machine_limits.c`` with our
toolchain, runs it on one thread and on all, and prints a JSON object: fields of
:class:`backend_c.profiles.limits.Limits` by the number of threads. ``--quick`` leaves out the
largest size, and runs the others for less long.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from backend_c.native.cache import Cache, default_directory, open_cache
from backend_c.native.libraries import build
from backend_c.native.toolchain import known_compiler
from backend_c.profiles.limits import Limits
from hlo.operating_system import processors

SIZES = tuple(1 << power for power in range(18, 29, 2))  # bytes: 256 KiB to 256 MiB
_SECONDS = 0.03  # of each kernel
_BYTES_A_SECOND, _TRIPS = 2e10, 200_000  # to choose how many passes that is, and 5 ms of products
_LONGEST_REGION = 2e-5  # seconds: what takes longer is other work on the machine
_REGIONS = 200  # parallel regions, of which the quickest counts: a millisecond
_SOURCE = Path(__file__).with_suffix(".c")


def measured(
    threads: int, cache: Cache, sizes: Sequence[int] = SIZES, seconds: float = _SECONDS
) -> Limits:
    """Measure the limits with ``threads`` threads; ``cache`` keeps the compiled loops.

    ``sizes`` are the sizes of memory that is read and copied, for so many ``seconds`` each.
    """
    library = _library(cache)
    memory = np.ones(max(sizes) + 64, np.uint8)
    start = memory.ctypes.data + -memory.ctypes.data % 64
    read, copy = {}, {}
    for size in sizes:
        passes = max(5, int(seconds * _BYTES_A_SECOND / size))
        read[size] = size / library.limit_read(start, size, passes, threads)
        copy[size] = max(
            size / library.limit_copy(start, size, passes, threads, streaming)
            for streaming in (0, 1)
        )
    operations = {
        "f32": library.limit_fma_f32(_TRIPS, 7, threads),
        "f64": library.limit_fma_f64(_TRIPS, 7, threads),
        "bf16": library.limit_tile_bf16(_TRIPS // 8, 7, threads),
        "s8": library.limit_tile_s8(_TRIPS // 8, 7, threads),
    }
    region = min(_LONGEST_REGION, library.limit_region(_REGIONS, threads))
    return Limits(read, copy, operations, region)


def measured_quickly(threads: int, cache: Cache) -> Limits:
    """Measure within half a second, without the largest sizes: enough for an explanation."""
    return measured(threads, cache, SIZES[:-1], _SECONDS / 8)


def _library(cache: Cache) -> ctypes.CDLL:
    """Compile and load the loops."""
    compiler = known_compiler(os.environ, cache)
    # The peak is that of fused multiply-adds, which the flags of programs forbid.
    compiler = replace(compiler, flags=(*compiler.flags, "-ffp-contract=fast"))
    library = ctypes.CDLL(str(build({_SOURCE.name: _SOURCE.read_text("utf-8")}, compiler, cache)))
    size, count, trips = ctypes.c_size_t, ctypes.c_int, ctypes.c_long
    for name in ("limit_fma_f32", "limit_fma_f64", "limit_tile_bf16", "limit_tile_s8"):
        getattr(library, name).argtypes = (trips, count, count)
        getattr(library, name).restype = ctypes.c_double
    library.limit_read.argtypes = (ctypes.c_void_p, size, count, count)
    library.limit_copy.argtypes = (ctypes.c_void_p, size, count, count, count)
    library.limit_region.argtypes = (count, count)
    library.limit_region.restype = ctypes.c_double
    library.limit_read.restype = library.limit_copy.restype = ctypes.c_double
    return library


def main() -> None:
    """Print the limits of one thread and of all."""
    every, measure = processors(), measured_quickly if "--quick" in sys.argv[1:] else measured
    cache = open_cache(default_directory(os.environ))
    found = {str(threads): asdict(measure(threads, cache)) for threads in (1, every)}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
