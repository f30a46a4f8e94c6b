"""Choose the launch configuration of kernels: blocks, threads of a block, dynamic shared memory.

Every kernel is right in blocks of any size and any number of them: this is for speed alone.
"""

from __future__ import annotations

from typing import NamedTuple

from backend_c.cuda.threads import launch_shape
from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Kernel, Loop, every
from backend_c.render.shared_memory import dynamic_shared_bytes
from backend_c.render.statements import block_size

WARP = 32
# However many registers a thread takes (255 at most), a multiprocessor has 64 Ki of them.
MOST_THREADS = 256
# A B200 has 148 multiprocessors with room for 8 such blocks each; others take a turn more.
MOST_BLOCKS = 2048


class Geometry(NamedTuple):
    """Hold the size of a launch: blocks, threads of each, and bytes of dynamic shared memory."""

    blocks: int
    threads: int
    shared: int = 0


def geometry(kernel: Kernel) -> Geometry:
    """Return a kernel's launch configuration, after :func:`backend_c.cuda.threads.mapped`."""
    shape, own = launch_shape(kernel), block_size(kernel)
    if shape == "single":
        return Geometry(1, 1)
    if shape == "block":
        return Geometry(1, own or _threads(_most(kernel, "lanes")))
    rows = max(_most(kernel, kind) for kind in ("parallel", "blocks", "warps"))
    elements = _most(kernel, "parallel lanes")
    threads = own or _threads(elements or _most(kernel, "lanes"))
    # CUDA refuses a launch of no blocks, as a loop without iterations would have.
    blocks = max(rows, -(-elements // threads), 1)
    return Geometry(min(blocks, MOST_BLOCKS), threads, dynamic_shared_bytes(kernel))


def _threads(iterations: int) -> int:
    """Return the threads of a block for a number of iterations: whole warps, at most 256
    threads."""
    return min(MOST_THREADS, max(1, -(-iterations // WARP)) * WARP)


def _most(kernel: Kernel, kind: str) -> int:
    """Return the most iterations of a loop of a kind; 0 if there is none."""
    loops = [one for one in every(kernel.body) if isinstance(one, Loop) and one.kind == kind]
    return max((ix.bounds(loop.extent)[1] for loop in loops), default=0)
