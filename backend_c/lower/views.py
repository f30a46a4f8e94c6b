"""Represent arrays that lie within other buffers: parts of concatenations, slices of operands.

A view is a window of another buffer, which moves nothing: indices are linearised by the dims of
the enclosing buffer. It is *dense* if its elements are contiguous, as those of a buffer are: any
kernel may then read and write it; if it is not, only kernels that access elements by index.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from backend_c.lower.plan import Buffer, Plan, View
from hlo.types import ArrayShape


def window(buffer: Buffer, starts: Sequence[int]) -> View:
    """Return the view of a window of a buffer that begins at index ``starts``."""
    dims = buffer.memory_dims
    offset = sum(map(math.prod, zip(starts, strides(dims), strict=True)))
    return View(buffer.base, start(buffer) + offset, dims)


def reshaped(buffer: Buffer, dims: tuple[int, ...]) -> View:
    """Return the view of a dense buffer as an array of other dims."""
    assert is_dense(buffer.shape, buffer.memory_dims)
    return View(buffer.base, start(buffer), dims)


def start(buffer: Buffer) -> int:
    """Return the offset in elements of a buffer's first element from that of its base."""
    return 0 if buffer.view is None else buffer.view.start


def strides(dims: Sequence[int]) -> list[int]:
    """Return the row-major strides of dims, in elements."""
    return [math.prod(dims[d + 1 :]) for d in range(len(dims))]


def is_dense(shape: ArrayShape, dims: Sequence[int]) -> bool:
    """Return whether a window of ``shape`` in an array of ``dims`` is contiguous in memory."""
    pairs = zip(shape.dims, strides(shape.dims), strides(dims), strict=True)
    return not shape.elements or all(extent == 1 or own == far for extent, own, far in pairs)


def span(buffer: Buffer) -> int:
    """Return the distance in elements from a buffer's first element to its last one, plus one."""
    if not buffer.shape.elements:
        return 0
    pairs = zip(buffer.shape.dims, strides(buffer.memory_dims), strict=True)
    return 1 + sum((extent - 1) * stride for extent, stride in pairs)


def overlap(one: Buffer, other: Buffer) -> bool:
    """Return whether two buffers may alias: have an element in common."""
    if one is other or one.base is not other.base:
        return one is other
    ranges, others = _ranges(one), _ranges(other)
    if one.memory_dims == other.memory_dims and ranges is not None and others is not None:
        pairs = zip(ranges, others, strict=True)
        return all(max(a.start, b.start) < min(a.stop, b.stop) for a, b in pairs)
    # Between different dims only spans are compared, which may overlap though windows do not.
    first, second = start(one), start(other)
    return max(first, second) < min(first + span(one), second + span(other))


def _ranges(buffer: Buffer) -> list[range] | None:
    """Return the range of indices of a window along each dimension of the enclosing array.

    None if the window wraps from one row to the next.
    """
    found: list[range] = []
    rest = start(buffer)
    dims = buffer.memory_dims
    for d, (extent, stride) in enumerate(zip(buffer.shape.dims, strides(dims), strict=True)):
        first, rest = divmod(rest, stride) if stride else (0, 0)
        if d and first + extent > dims[d]:
            return None
        found.append(range(first, first + extent))
    return found


def with_views(plan: Plan) -> set[Buffer]:
    """Return the buffers that are views, and those that views lie in."""
    views = [buffer for buffer in plan.buffers if buffer.view is not None]
    return {*views, *(buffer.base for buffer in views)}


def overlapping(plan: Plan) -> dict[Buffer, list[Buffer]]:
    """Map each buffer to those that may alias it, itself included."""
    lying: dict[Buffer, list[Buffer]] = {}
    for buffer in plan.buffers:
        lying.setdefault(buffer.base, []).append(buffer)
    return {
        buffer: [other for other in together if overlap(buffer, other)]
        for together in lying.values()
        for buffer in together
    }
