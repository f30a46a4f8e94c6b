"""Recognise launches of maps: kernels that are one loop over elements of only lets and stores."""

from __future__ import annotations

from dataclasses import dataclass

from backend_c.ir.loop_ir import (
    Array,
    Kernel,
    Let,
    Load,
    Loop,
    Store,
    parts,
)
from backend_c.lower.plan import Buffer, Launch

_LANES = ("lanes", "parallel lanes")


@dataclass(frozen=True, slots=True)
class Map:
    """Hold the parts of a map's launch: lets before the loop, and the loop over all elements."""

    launch: Launch
    kernel: Kernel
    bound: tuple[Let, ...]
    loop: Loop

    def buffers(self) -> dict[Array, Buffer]:
        """Return the buffers of the kernel's arrays."""
        return buffers_by_array(self.launch, self.kernel)

    def arrays(self) -> dict[Buffer, Array]:
        """Return the kernel's arrays by their buffers."""
        return {buffer: array for array, buffer in self.buffers().items()}

    def loads(self) -> list[Load]:
        """Return all loads, those of the loop last."""
        found = parts((*self.bound, *self.loop.body))
        return [part for part in found if type(part) is Load]

    def stores(self) -> list[Store]:
        """Return the stores of the loop."""
        return [statement for statement in self.loop.body if isinstance(statement, Store)]

    def size(self) -> int:
        """Return the number of subexpressions, a measure of code size and register pressure."""
        return sum(1 for _ in parts((*self.bound, *self.loop.body)))


def may_be_map(kernel: Kernel) -> bool:
    """Test whether a launch of a kernel can be a map, whatever its buffers are."""
    loop = kernel.body[-1]
    is_loop = isinstance(loop, Loop) and loop.kind in _LANES and not loop.sums
    return kernel.is_plain and is_loop


def map_of(launch: Launch, kernel: Kernel) -> Map | None:
    """Match a launch as a map with one store per result; None if it is anything else.

    The offsets of the stores are not checked.
    """
    *bound, loop = kernel.body
    if not may_be_map(kernel) or not isinstance(loop, Loop):
        return None
    lets = tuple(statement for statement in bound if isinstance(statement, Let))
    if len(lets) < len(bound) or not all(isinstance(s, Let | Store) for s in loop.body):
        return None
    buffers = (*launch.inputs, *launch.outputs)
    if any(b.sizes is not None or b.view is not None for b in buffers):
        return None
    if len({*buffers}) < len(buffers):
        return None
    found = Map(launch, kernel, lets, loop)
    # What reads an array as one of another type is no element of it.
    if any(load.array not in buffers_by_array(launch, kernel) for load in found.loads()):
        return None
    names = [store.array.name for store in found.stores()]
    return found if len({*names}) == len(names) == len(kernel.outputs) else None


def buffers_by_array(launch: Launch, kernel: Kernel) -> dict[Array, Buffer]:
    """Map a kernel's arrays (inputs, outputs, scratch) to the buffers of a launch."""
    arrays = (*kernel.inputs, *kernel.outputs, *kernel.scratch)
    buffers = (*launch.inputs, *launch.outputs, *launch.scratch)
    return dict(zip(arrays, buffers, strict=True))
