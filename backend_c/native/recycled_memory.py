"""Recycle the pages of large results, for results of later calls.

An operating system gives fresh pages as zeros, one page fault each: for a result of 40 MB that
takes longer than to compute it. A block goes back when the last array over it dies, views included,
and is given to the next result of about its size. No two arrays that live share a block.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hlo.values import Array

# Three results of 256 KiB take 14 us from here and 150 from malloc, which gives back the pages of
# what is free at the end of its memory; those of one alone it keeps, and takes 3 us less. Smaller
# ones are not worth it.
SMALLEST = 1 << 18
MAXIMUM_KEPT = 1 << 30
_SLACK = 4  # a block may be longer than what it is taken for by this part of it
_ALIGNMENT = 64


def aligned(size: int) -> Array:
    """Allocate bytes that begin at a cache line."""
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size]


class _Block:
    """Hold memory aligned to a cache line."""

    __slots__ = ("memory",)

    def __init__(self, size: int) -> None:
        self.memory = aligned(size)


class _Lease:
    """Return a block to its pool when the last array based on this object dies."""

    __slots__ = ("__array_interface__", "_block", "_pool")

    def __init__(self, block: _Block, pool: Pool) -> None:
        self._block, self._pool = block, pool
        self.__array_interface__ = block.memory.__array_interface__

    def __del__(self) -> None:
        self._pool.give_back(self._block)


class Pool:
    """Keep free blocks, at most ``maximum`` bytes together; 0 keeps none.

    It has no lock: arrays die at any moment in any thread, also in one that is taking a block. Each
    change is one operation on a list, which Python makes atomic.
    """

    def __init__(self, maximum: int = MAXIMUM_KEPT) -> None:
        self._maximum = maximum
        self._blocks: list[_Block] = []  # the one that was given back last at the end

    @property
    def kept(self) -> int:
        """Return the bytes of free blocks."""
        return sum(block.memory.size for block in tuple(self._blocks))

    def limit(self, maximum: int) -> None:
        """Set the maximum, and free blocks down to it."""
        self._maximum = maximum
        self._trim()

    def empty(self, dims: tuple[int, ...], dtype: np.dtype[Any], size: int) -> Array:
        """Allocate an uninitialised array of ``size`` bytes, large ones from free blocks."""
        if size < SMALLEST or not self._maximum:
            return np.empty(dims, dtype)
        try:
            block = self._taken(size) or _Block(size)
        except MemoryError:
            # What is kept for later may be what is missing now.
            self._blocks.clear()
            return np.empty(dims, dtype)
        memory = np.asarray(_Lease(block, self))
        return memory[:size].view(dtype).reshape(dims)

    def give_back(self, block: _Block) -> None:
        """Add a block that no array uses any more to the free ones."""
        self._blocks.append(block)
        self._trim()

    def _taken(self, size: int) -> _Block | None:
        """Take a free block of about a size, the last one given back first (it may be cached)."""
        for block in reversed(tuple(self._blocks)):
            if size <= block.memory.size <= size + size // _SLACK:
                try:
                    self._blocks.remove(block)
                except ValueError:  # another thread has taken it since
                    continue
                return block
        return None

    def _trim(self) -> None:
        """Free the oldest blocks until the maximum is met."""
        while self._blocks and self.kept > self._maximum:
            try:
                self._blocks.pop(0)
            except IndexError:  # another thread has freed them
                return


POOL = Pool()  # of the process, as pages are


def keep_result_memory(maximum: int) -> None:
    """Set how many bytes of dead results' memory are kept for later results; 0 keeps none.

    The default is 1 GiB. What is kept above the new maximum is freed.
    """
    POOL.limit(max(0, maximum))
