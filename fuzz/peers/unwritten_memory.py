"""Fill new memory, so that reading what was never written shows.

Most of what a process allocates has been used before, often by the same program for the same value:
a compiler that leaves out a part of a result returns what was right the last time.
"""

from __future__ import annotations

import ctypes

# glibc's M_PERTURB: memory that is given back is filled with this byte, and new memory with its
# complement, 0x5C, of which every type makes a large number: 2.5e17 in f32, 279 in f16.
_PARAMETER, _BYTE = -6, 0xA3


def fill_unwritten_memory() -> bool:
    """Have the C library fill what it allocates in this process from now on; return whether it can.

    glibc can; but what it keeps for a thread, blocks of up to 1 KiB that are aligned to 16 bytes at
    most, it hands out as it was. Compilers align the arrays of programs to more.
    """
    tell = getattr(ctypes.CDLL(None), "mallopt", None)
    return tell is not None and tell(_PARAMETER, _BYTE) == 1
