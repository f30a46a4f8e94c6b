"""Distribute the loops of a kernel over blocks and threads.

blocks   a loop that a kernel wrote for blocks: as it says
grid     a loop over independent iterations: a block takes some of them if its threads can share
         their work (a row), else each thread takes some, alone
block    other kernels with loops that the threads of one block can share
single   anything else: one thread does it
"""

from __future__ import annotations

from dataclasses import replace

from backend_c.cuda.cooperation import alone, by_one_block, row_by_block, serial
from backend_c.cuda.lines import in_lines
from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Kernel, Let, Loop, Statement, every
from backend_c.ir.loop_rewriting import with_blocks

# A GPU runs some hundred blocks at a time, and so many threads.
_FEW_ROWS, _WIDE = 256, 1 << 14
_OF_BLOCKS = ("blocks", "warps")  # loops that a kernel wrote for blocks


def mapped(kernel: Kernel) -> Kernel:
    """Return a kernel whose loops have kinds by the threads that share them in CUDA.

    Kinds of loops are "parallel", "blocks" and "warps" (over blocks), "parallel lanes" (over all
    threads), "lanes" (over the threads of a block) and "serial".
    """
    if any(map(is_independent, kernel.body)):
        shared = (made for one in kernel.body for made in _shared(one, kernel))
        return replace(kernel, body=tuple(shared))
    return replace(kernel, body=by_one_block(kernel) or alone(kernel.body))


def launch_shape(kernel: Kernel) -> str:
    """Return the shape of a kernel's launch (:class:`backend_c.cuda.host_plan.LaunchKernel`).

    A ``grid`` of blocks, the same of whole ``warps``, one ``block``, or a ``single`` thread.
    """
    kinds = {statement.kind for statement in every(kernel.body) if isinstance(statement, Loop)}
    if "warps" in kinds:
        return "warps"
    if any("parallel" in kind or kind == "blocks" for kind in kinds):
        return "grid"
    return "block" if "lanes" in kinds else "single"


def is_independent(statement: Statement) -> bool:
    """Return whether a statement is a loop that blocks can share."""
    # Blocks cannot wait for each other to combine sums within a launch.
    if not isinstance(statement, Loop) or statement.sums:
        return False
    return statement.kind in ("parallel", "parallel lanes", *_OF_BLOCKS)


def _shared(statement: Statement, kernel: Kernel) -> tuple[Statement, ...]:
    """Distribute a top-level statement of a kernel that all blocks run."""
    if not isinstance(statement, Loop) or not is_independent(statement):
        return (statement,)
    if statement.kind in _OF_BLOCKS:
        return (statement._replace(body=tuple(map(_in_block, statement.body))),)
    if statement.kind == "parallel" and _is_wide_map(statement):
        body = tuple(made for one in statement.body for made in _in_all_threads(one))
        return (statement._replace(kind="serial", body=body),)
    by_block = row_by_block(statement, kernel) if statement.kind == "parallel" else None
    return (by_block,) if by_block is not None else _of_all_threads(statement)


def _in_block(statement: Statement) -> Statement:
    """Map the loops of kind "threads" in a loop over blocks to the threads of a block."""
    match statement:
        case Loop() if statement.kind == "threads":
            return statement._replace(kind="lanes", body=alone(statement.body))
        case _:
            return serial(with_blocks(statement, lambda block: tuple(map(_in_block, block))))


def _is_wide_map(loop: Loop) -> bool:
    """Return whether a loop computes a few long rows, each by one loop in lanes."""
    *values, last = loop.body
    if not isinstance(last, Loop) or last.kind != "lanes" or last.sums:
        return False
    if not all(isinstance(one, Let) for one in values):
        return False
    return ix.bounds(loop.extent)[1] < _FEW_ROWS and ix.bounds(last.extent)[1] >= _WIDE


def _in_all_threads(statement: Statement) -> tuple[Statement, ...]:
    """Distribute a loop over all threads; leave other statements."""
    return _of_all_threads(statement) if isinstance(statement, Loop) else (statement,)


def _of_all_threads(loop: Loop) -> tuple[Loop, ...]:
    """Distribute a loop over all threads of all blocks, in lines where possible."""
    return in_lines(loop._replace(kind="parallel lanes", body=alone(loop.body)))
