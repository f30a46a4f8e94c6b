"""Measure what the machine can do at most: bytes and operations a second.

``python -m bench.speed.limits`` compiles ``limits.c`` with our toolchain, runs it on one thread and
on all, and prints a JSON object: fields of :class:`Limits` by the number of threads.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from backend_c.native.cache import default_directory, open_cache
from backend_c.native.toolchain import build, find_compiler

K = TypeVar("K")

SIZES = tuple(1 << power for power in range(18, 29, 2))  # bytes: 256 KiB to 256 MiB
_READ, _COPY = "read", "copy"
_SECONDS = 0.03  # of each kernel
_BYTES_A_SECOND, _TRIPS = 2e10, 200_000  # to choose how many passes that is, and 5 ms of products
_MOSTLY = 8  # a program whose results are less than this part of its bytes only reads
_SOURCE = Path(__file__).with_suffix(".c")


@dataclass(frozen=True, slots=True)
class Limits:
    """``read`` and ``copy``: bytes a second by the bytes that are touched. ``operations``: of a
    type, a second; a multiply-add is two."""

    read: Mapping[int, float]
    copy: Mapping[int, float]
    operations: Mapping[str, float]

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """Make limits of what :func:`main` prints: JSON has no numbers as keys."""
        read, copy = ({int(k): float(v) for k, v in fields[x].items()} for x in (_READ, _COPY))
        return cls(read, copy, fields["operations"])

    def bandwidth(self, read: int, written: int) -> float:
        """Return the bytes a second with which so many bytes can be read and written: that of the
        largest measured size that is not larger."""
        table = self.read if written * _MOSTLY < read else self.copy
        fitting = [size for size in table if size <= read + written]
        return table[max(fitting, default=min(table))]

    def seconds(self, read: int, written: int, operations: Mapping[str, float]) -> float:
        """Return the least time of a program: the larger of bytes / bandwidth and the sum of
        operations / peak over the types."""
        memory = (read + written) / self.bandwidth(read, written)
        arithmetic = sum(count / self.peak(kind) for kind, count in operations.items())
        return max(memory, arithmetic)

    def peak(self, kind: str) -> float:
        """Return the operations a second of a type: without a unit of its own, those of f32."""
        return self.operations.get(kind) or self.operations["f32"]


def best(one: Limits, other: Limits) -> Limits:
    """Return the better of two measurements, figure by figure."""
    return Limits(
        _larger(one.read, other.read),
        _larger(one.copy, other.copy),
        _larger(one.operations, other.operations),
    )


def _larger(one: Mapping[K, float], other: Mapping[K, float]) -> dict[K, float]:
    return {key: max(value, other[key]) for key, value in one.items()}


def measured(threads: int) -> Limits:
    """Measure on so many threads."""
    library = _library()
    memory = np.ones(max(SIZES) + 64, np.uint8)
    start = memory.ctypes.data + -memory.ctypes.data % 64
    read, copy = {}, {}
    for size in SIZES:
        passes = max(5, int(_SECONDS * _BYTES_A_SECOND / size))
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
    return Limits(read, copy, operations)


def _library() -> ctypes.CDLL:
    compiler = find_compiler(os.environ)
    compiler = replace(compiler, flags=(*compiler.flags, "-ffp-contract=fast"))
    cache = open_cache(default_directory(os.environ))
    library = ctypes.CDLL(str(build({_SOURCE.name: _SOURCE.read_text()}, compiler, cache)))
    size, count, trips = ctypes.c_size_t, ctypes.c_int, ctypes.c_long
    for name in ("limit_fma_f32", "limit_fma_f64", "limit_tile_bf16", "limit_tile_s8"):
        getattr(library, name).argtypes = (trips, count, count)
        getattr(library, name).restype = ctypes.c_double
    library.limit_read.argtypes = (ctypes.c_void_p, size, count, count)
    library.limit_copy.argtypes = (ctypes.c_void_p, size, count, count, count)
    library.limit_read.restype = library.limit_copy.restype = ctypes.c_double
    return library


def main() -> None:
    every = len(os.sched_getaffinity(0))
    found = {str(threads): asdict(measured(threads)) for threads in (1, every)}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
