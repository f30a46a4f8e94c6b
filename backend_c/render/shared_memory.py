"""Allocate dynamic shared memory for CUDA kernels that exceed the static limit of 48 KiB.

Functions of the runtime have up to 2 KiB of that, the kernel's arrays the rest. What takes more
lies in memory that a launch asks for: 99 KiB and more, by GPU.
"""

from __future__ import annotations

from backend_c.ir.gpu import RUNTIME_SHARED, STATIC_SHARED
from backend_c.ir.loop_ir import Array, Kernel, LocalArray, every

_ALIGNED = 16  # bytes


def dynamic_shared(kernel: Kernel) -> dict[str, int]:
    """Return the byte offsets of a kernel's shared arrays in dynamic shared memory, by name.

    Empty if they fit in static shared memory, beside those of the runtime.
    """
    places: dict[str, int] = {}
    end = 0
    for statement in every(kernel.body):
        if isinstance(statement, LocalArray) and statement.array.is_shared:
            places[statement.array.name] = end
            end += -(-_bytes(statement.array) // _ALIGNED) * _ALIGNED
    return places if end > STATIC_SHARED - RUNTIME_SHARED else {}


def dynamic_shared_bytes(kernel: Kernel) -> int:
    """Return the bytes of dynamic shared memory that a launch of a kernel asks for."""
    places = dynamic_shared(kernel)
    arrays = (s.array for s in every(kernel.body) if isinstance(s, LocalArray))
    return max((places[a.name] + _bytes(a) for a in arrays if a.name in places), default=0)


def _bytes(array: Array) -> int:
    return array.elements * max(array.element_type.bits // 8, 1)
