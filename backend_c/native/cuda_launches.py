"""Launch kernels by the driver, with argument tables prepared once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from backend_c.cuda.geometry import Geometry
from backend_c.cuda.host_plan import LaunchKernel, MultiplyMatrices
from backend_c.lower.matrix_product import LIBRARY
from backend_c.native.cuda_driver import Device

_SEED = 0xFFFF_FFFF_FFFF_FFFF  # kernels take 64 bits of it
_NAMED = 4  # launches in a message

# Launches a kernel (its step, its function, the addresses of its arguments) on a stream.
Launcher = Callable[[Device, LaunchKernel, Any, Any, Any], None]


def launch_as_planned(
    device: Device,
    step: LaunchKernel,
    function: Any,
    words: Any,
    stream: Any,
    chosen: Geometry | None = None,
) -> None:
    """Launch a kernel in its planned geometry, or in ``chosen``."""
    blocks, threads, shared = chosen or step.geometry
    null = device.driver.ffi.NULL
    device.driver.call(
        "cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, shared, stream, words, null,
        doing=told(step),
    )  # fmt: skip


class PreparedLaunch:
    """Hold a launch whose argument table lacks only the addresses of a run.

    ``moving`` lists the arguments in memory of the caller: (number, block, number there).
    """

    __slots__ = ("_addresses", "function", "moving", "step", "words")

    def __init__(self, step: LaunchKernel, function: Any, ffi: Any, fixed: Mapping[str, int]):
        places = [operand.place for operand in step.operands]
        self.step, self.function = step, function
        # The seed, by value, is the last.
        self._addresses = ffi.new("uint64_t[]", len(places) + 1)
        self.words = ffi.new("void *[]", [self._addresses + n for n in range(len(places) + 1)])
        self.moving = [(n, p.block, p.offset) for n, p in enumerate(places) if p.block not in fixed]
        for n, place in enumerate(places):
            if place.block in fixed:
                self._addresses[n] = fixed[place.block] + place.offset

    def place(self, blocks: Mapping[str, Sequence[int]], seed: int) -> None:
        """Write the addresses of a run's arguments and results, and its seed."""
        for n, block, number in self.moving:
            self._addresses[n] = blocks[block][number]
        if self.step.takes_seed:
            self._addresses[len(self.step.operands)] = seed & _SEED


def told(step: LaunchKernel | MultiplyMatrices) -> str:
    """Describe a launch for messages: its kernel and the instruction."""
    instruction = step.origin.instruction
    return f"{computed_by(step)} (%{instruction})" if instruction else computed_by(step)


def computed_by(step: LaunchKernel | MultiplyMatrices) -> str:
    """Return what computes a step: a kernel, or the library that may do so in its stead."""
    return step.kernel if isinstance(step, LaunchKernel) else LIBRARY


def one_of(since: Sequence[LaunchKernel | MultiplyMatrices]) -> str:
    """Return the start of an error message: which of some launches may have failed."""
    names = list(dict.fromkeys(map(told, since)))
    if not names:
        return ""
    if len(names) == 1:
        return f"{names[0]}: "
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    listed = ", ".join(names[:_NAMED])
    return f"one of {listed}{more} (CUDA_LAUNCH_BLOCKING=1 tells which): "
