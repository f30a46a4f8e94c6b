"""Tile layers into bands of rows until a program's workspace fits the memory of its caller.

The value that is computed by bands, and the rows of one, decide what is in memory and what is
computed twice. Of the choices that fit, the one with the fewest multiplications is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from backend_c.lower.buffers import allocate_tightly
from backend_c.lower.plan import Plan
from hlo.module import Instruction, Module
from hlo.opcodes import ELEMENTWISE, of_family
from hlo.passes.bands.regions import Region, Regions
from hlo.passes.bands.tiling import in_bands, trips
from hlo.passes.pipelines import run
from hlo.passes.rewriting import array
from hlo.passes.updates_in_place import is_static_array
from hlo.work import byte_count, multiply_accumulates

# Users of these compute their elements with those of what they read: it is no array in memory.
_ABSORBING = of_family(ELEMENTWISE) | {"broadcast"}
_MOST_LOOPS = 4
_FEWEST = 2  # windowed instructions, between which there are rows that need not be in memory


@dataclass(frozen=True, slots=True)
class Bands:
    """Describe a loop over bands: the instruction it computes, rows of a band, number of bands."""

    instruction: str
    rows: int
    bands: int
    multiply_accumulates: int  # of the loop, repeated ones included


@dataclass(frozen=True, slots=True)
class _Banded:
    """Hold a module with bands, its plan, the bytes of its workspace, and its multiplications."""

    module: Module
    plan: Plan
    bytes: int
    bands: tuple[Bands, ...]
    multiply_accumulates: int


def banded_plan(
    module: Module, plan: Plan, most: int, plan_of: Callable[[Module], Plan]
) -> tuple[Plan, tuple[Bands, ...]]:
    """Return the plan of a module whose workspace is at most ``most`` bytes, with bands if need be.

    Where one loop over bands is not enough, the one that leaves the smallest workspace is kept and
    another is sought; if nothing is enough, it is the plan with the smallest workspace.
    ``plan_of`` lowers a module after the passes that follow a division into bands.
    """
    best = _Banded(module, plan, allocate_tightly(plan).bytes, (), 0)
    if best.bytes <= most:
        return plan, ()
    module = run(module, "before_bands")
    best = replace(best, module=module, multiply_accumulates=multiply_accumulates(module))
    for _ in range(_MOST_LOOPS):
        search = _Search(best, plan_of)
        found = [one for result in search.results() for one in search.largest(result, most)]
        fitting = [one for one in found if one.bytes <= most]
        if fitting:
            best = min(fitting, key=lambda one: one.multiply_accumulates)
            break
        least = min(found, key=lambda one: (one.bytes, one.multiply_accumulates), default=best)
        if least.bytes >= best.bytes:
            break
        best = least
    return best.plan, best.bands


class _Search:
    """Search the values of a module's entry for one to compute by bands."""

    def __init__(self, whole: _Banded, plan_of: Callable[[Module], Plan]) -> None:
        self._whole, self._plan_of = whole, plan_of
        self._entry = whole.module.entry
        self._regions = Regions(whole.module)
        self._products = multiply_accumulates(whole.module)

    def results(self) -> Iterator[tuple[Instruction, int]]:
        """Yield (value, dimension of its rows) of values that may be computed by bands.

        The dimension is the outermost one over which windows move: its rows lie side by side.
        """
        for instruction in self._entry.instructions:
            is_array = is_static_array(instruction.shape) and array(instruction.shape).elements
            if not is_array or not self._is_stored(instruction):
                continue
            if byte_count(instruction.shape) >= self._whole.bytes:
                continue
            for dimension in range(array(instruction.shape).rank):
                if self._region(instruction, dimension, 1) is not None:
                    yield instruction, dimension
                    break

    def _is_stored(self, instruction: Instruction) -> bool:
        """Return whether a value is stored to memory, not only fused into its users."""
        users = (
            self._regions.by_name[name].opcode for name in self._regions.users(instruction.name)
        )
        is_root = instruction.name == self._entry.root
        return is_root or any(opcode not in _ABSORBING for opcode in users)

    def _region(self, result: Instruction, dimension: int, rows: int) -> Region | None:
        """Return the region that bands are computed from; None if it has too few windows to save
        memory."""
        region = self._regions.region(result, dimension, rows)
        return region if region is not None and region.windowed >= _FEWEST else None

    def largest(self, of: tuple[Instruction, int], most: int) -> Iterator[_Banded]:
        """Yield the plan with the largest bands of a value that fit, by bisection.

        They are then made as equal as their number allows, since the last one overlaps. If none
        fit, it is the plan with bands of one row.
        """
        result, dimension = of
        best, total = self._tried(result, dimension, 1), array(result.shape).dims[dimension]
        # Bands of more than half of the rows are two, too, and compute more rows twice.
        low, high = 1, -(-total // 2)
        while best.bytes <= most and low < high:
            middle = (low + high + 1) // 2
            tried = self._tried(result, dimension, middle)
            if tried.bytes <= most:
                low, best = middle, tried
            else:
                high = middle - 1
        even = -(-total // -(-total // low))
        lower = self._tried(result, dimension, even) if even < low else best
        yield lower if lower.bytes <= most else best

    def _tried(self, result: Instruction, dimension: int, rows: int) -> _Banded:
        """Return the plan with bands of ``rows`` rows of a value."""
        region = self._region(result, dimension, rows)
        assert region is not None
        module, number = in_bands(self._whole.module, self._regions, region), trips(region)
        body = module.computations[-2]  # before the entry
        once = multiply_accumulates(replace(module, computations=(body,)))
        bands = Bands(result.name, rows, number, number * once)
        # Those of the loops that were there are counted in the module once, as they are written.
        work = multiply_accumulates(module) - self._products + self._whole.multiply_accumulates
        plan = self._plan_of(module)
        return _Banded(
            *(module, plan, allocate_tightly(plan).bytes, (*self._whole.bands, bands)),
            work + (number - 1) * once,
        )
