"""Define limits of CUDA, and the sizes of a typical GPU by which work is divided."""

from __future__ import annotations

# Of every GPU.
LARGEST_BLOCK = 1024  # threads
STATIC_SHARED = 48 << 10  # bytes of shared memory that a block has without being asked for more
RUNTIME_SHARED = 2 << 10  # bytes of that for functions of the runtime, beside arrays of a kernel

# Of an H100 or H200, about: what is worth sharing.
MULTIPROCESSORS = 132
RESIDENT_THREADS = 1 << 17  # that run at a time
