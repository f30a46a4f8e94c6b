"""Render a plan as translation units: its distinct kernels, and an entry point that calls them.

    void hlo_entry(const void *const *arguments, void *const *results,
                   const unsigned char *constants, unsigned char *workspace, uint64_t seed);

``arguments`` and ``results`` point to row-major arrays; after an array with bounded dimensions
comes the pointer to its int32 actual sizes. Several plans in one library have an entry point each,
and the library has a table of them::

    void (*const hlo_entries[])(…)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from backend_c.lower import buffers
from backend_c.lower.buffers import Workspace
from backend_c.lower.plan import (
    Buffer,
    Plan,
)
from backend_c.render.dialect import EMBEDDED, OPENMP, Dialect
from backend_c.render.distinct_kernels import DistinctKernels
from backend_c.render.early_units import EarlyUnits, unit_text
from backend_c.render.entry_point import EntryPoint
from backend_c.render.statements import LAUNCH_BOUNDS
from backend_c.render.timers import DEFINITIONS, Timers, count
from hlo.types import ArrayShape, ElementType, element_type_of

_PARAMETERS = (
    "(const void *const *arguments, void *const *results,\n"
    "               const unsigned char *constants, unsigned char *workspace, uint64_t seed)"
)
ENTRY = f"void hlo_entry{_PARAMETERS}"
# Of dialects without an entry: the name in a kernel's head, and what starts the random state.
LAUNCHED = re.compile(rf'^extern "C" __global__ void {LAUNCH_BOUNDS}(\w+)\(', re.MULTILINE)
RANDOM_KERNEL = "hlo_random_start"
RANDOM_START = f"""\
extern "C" __global__ void {RANDOM_KERNEL}(hlo_seed *random, uint64_t seed) {{
    hlo_seed_start(random, seed);
}}
"""
_PARALLEL = "#pragma omp parallel"
# Characters in one translation unit. Of gcc's 120 ms for 6,000 of them it takes 17 to start; what a
# machine compiles at a time is worth that, further units are when each of them is long.
_SHORT_UNIT, _UNIT = 3_000, 12_000
_UNITS = 8  # at most: more than most machines compile at a time
_INDENT = "    "


class Place(NamedTuple):
    """Address a buffer: the number of an argument or a result, or a byte offset in a block.

    ``block`` is ``arguments``, ``results``, ``constants`` or ``workspace``.
    """

    block: str
    offset: int


@dataclass(frozen=True)
class Program:
    """Hold a rendered module: all that is needed to compile and call it, nothing that a run
    changes.

    ``sources`` are translation units by file name; ``constants`` is the block that ``hlo_entry``
    receives; ``parameters`` and ``results`` are the arrays in order; ``number`` is that of the
    entry in the table, None where there is but one.
    """

    sources: Mapping[str, str]
    parameters: tuple[ArrayShape, ...]
    results: tuple[ArrayShape, ...]
    constants: bytes
    workspace_bytes: int
    places: Mapping[Buffer, Place]
    kernel_names: tuple[str, ...]  # of the plan's kernels in order; equal ones share a name
    number: int | None = None
    times: int | None = None  # where a timed program has its times in the workspace

    @property
    def is_parallel(self) -> bool:
        """Return whether something in it runs on several threads of OpenMP."""
        return any(_PARALLEL in text for text in self.sources.values())


def render_plan(
    plan: Plan,
    dialect: Dialect,
    workspace: Workspace | None = None,
    *,
    timed: bool = False,
    kernels: DistinctKernels | None = None,
    at_a_time: int = 1,
    early: EarlyUnits | None = None,
) -> Program:
    """Render a plan; ``workspace`` is its allocation, by default the densest known.

    ``timed``: the entry times its steps (:mod:`backend_c.render.timers`). ``kernels`` renders
    kernels, some of which it may have met. ``at_a_time``: the units that will be compiled at a
    time; of a short program there are no more. ``early``: units that there are already, in place
    of ``kernels``.
    """
    if early is not None:
        kernels = early.kernels
    kernels = kernels or DistinctKernels(dialect)
    allocate = buffers.allocate_tightly if dialect is EMBEDDED else buffers.allocate
    program, entry = _rendered(plan, kernels, workspace or allocate(plan), timed=timed)
    entry = f"{ENTRY} {entry}" if dialect.has_entry else _started([plan])
    entry = f"{DEFINITIONS}\n{entry}" if timed else entry
    sources = _units(_texts([program], kernels), entry, dialect, at_a_time, early=early)
    return replace(program, sources=sources)


def _texts(programs: Sequence[Program], kernels: DistinctKernels) -> dict[str, str]:
    """Return the text of each kernel that programs call, by name."""
    names = dict.fromkeys(name for program in programs for name in program.kernel_names)
    return {name: kernels.text(name) for name in names}


def render_plans(
    plans: Sequence[Plan],
    dialect: Dialect,
    allocate: Callable[[Plan], Workspace] = buffers.allocate,
) -> list[Program]:
    """Render several plans as one translation unit, for which a compiler is started once."""
    kernels = DistinctKernels(dialect)
    rendered = [_rendered(plan, kernels, allocate(plan)) for plan in plans]
    texts = _texts([program for program, _ in rendered], kernels)
    if not dialect.has_entry:
        sources = _units(texts, _started(plans), dialect, 1, most=1)
        return [replace(one, sources=sources) for one, _ in rendered]
    entries = [
        f"static void hlo_entry_{n}{_PARAMETERS} {entry}" for n, (_, entry) in enumerate(rendered)
    ]
    names = "".join(f"{_INDENT}hlo_entry_{n},\n" for n in range(len(rendered)))
    table = f"void (*const hlo_entries[]){_PARAMETERS}"
    table = f"{table} = {{\n{names}}};\n"
    sources = _units(texts, "\n".join([*entries, table]), dialect, 1, most=1)
    return [replace(one, sources=sources, number=n) for n, (one, _) in enumerate(rendered)]


def _rendered(
    plan: Plan, kernels: DistinctKernels, workspace: Workspace, *, timed: bool = False
) -> tuple[Program, str]:
    """Render a plan's kernels; return a program without sources, and the body of its entry."""
    constants, offsets = _constant_block(plan, kernels.dialect.alignment)
    places = _places(plan, workspace.offsets, offsets)
    names = kernels.names(plan)
    pairs = count(plan) if timed else 0
    times = -(-workspace.bytes // buffers.ALIGNMENT) * buffers.ALIGNMENT if timed else None
    program = Program(
        {},
        tuple(buffer.shape for buffer in plan.arguments),
        tuple(buffer.shape for buffer in plan.results),
        constants,
        workspace.bytes if times is None else times + 16 * pairs,
        places,
        names,
        times=times,
    )
    if not kernels.dialect.has_entry:
        return program, ""
    pointers = {buffer: _pointer(place) for buffer, place in places.items()}
    return program, EntryPoint(pointers, names, plan, Timers(times, pairs)).text()


def _started(plans: Sequence[Plan]) -> str:
    """Render the kernel that seeds the random state; empty if no plan uses one."""
    return RANDOM_START if any(k.uses_seed for plan in plans for k in plan.kernels) else ""


def with_sizes(arrays: Sequence[Buffer]) -> Iterator[Buffer]:
    """Yield arrays in the order of the entry's pointers: a bounded one is followed by its sizes."""
    for buffer in arrays:
        yield buffer
        if buffer.sizes is not None:
            yield buffer.sizes


def _constant_block(plan: Plan, alignment: int) -> tuple[bytes, dict[Buffer, int]]:
    """Lay out all constants in one block, equal ones once; return the block and the offsets."""
    block = bytearray()
    seen: dict[bytes, int] = {}
    offsets: dict[Buffer, int] = {}
    for buffer, value in plan.constants:
        data = stored_bytes(value)
        if data not in seen:
            block.extend(b"\0" * (-len(block) % alignment))
            seen[data] = len(block)
            block.extend(data)
        offsets[buffer] = seen[data]
    return bytes(block), offsets


def stored_bytes(value: np.ndarray) -> bytes:
    """Return an array's bytes as generated code reads them: row-major, of :func:`storage_type`."""
    element_type = element_type_of(value.dtype)
    assert element_type is not None, value.dtype
    return np.ascontiguousarray(value, storage_type(element_type)).tobytes()


def storage_type(element_type: ElementType) -> np.dtype[np.generic]:
    """Return the NumPy type of an array in memory.

    Sub-byte integers are sign or zero extended to a byte, which those of ml_dtypes are not.
    """
    if element_type.is_integer and element_type.bits < 8:
        return np.dtype(np.int8 if element_type.kind == "signed" else np.uint8)
    return element_type.numpy


def _places(
    plan: Plan, workspace: Mapping[Buffer, int], constants: Mapping[Buffer, int]
) -> dict[Buffer, Place]:
    """Return the address of each buffer, as a block and an offset."""
    places = {b: Place("arguments", n) for n, b in enumerate(with_sizes(plan.arguments))}
    places |= {b: Place("results", n) for n, b in enumerate(with_sizes(plan.results))}
    places |= {b: Place("constants", offset) for b, offset in constants.items()}
    places |= {b: Place("workspace", offset) for b, offset in workspace.items()}
    return places


def _pointer(place: Place) -> str:
    """Return the C expression of an address in the entry point."""
    is_array = place.block in ("arguments", "results")
    return f"{place.block}[{place.offset}]" if is_array else f"({place.block} + {place.offset})"


def _units(
    texts: Mapping[str, str],
    entry: str,
    dialect: Dialect,
    at_a_time: int,
    most: int = _UNITS,
    early: EarlyUnits | None = None,
) -> dict[str, str]:
    """Group kernels that are in no early unit into translation units of similar size, which are
    compiled in parallel; the last one has the entry."""
    units = dict(early.texts) if early else {}
    rest = {n: text for n, text in texts.items() if not early or n not in early.names}
    # Only OpenMP C is compiled by us, in parallel units; other targets are one file.
    groups = [list(rest.values())]
    if dialect is OPENMP:
        groups = _groups(rest, len(entry), at_a_time, most)
    is_alone = len(units) + len(groups) == 1
    heads = "" if is_alone else "".join(map(_prototype, texts.values()))
    for number, group in enumerate(groups):
        body = "\n".join(group)
        if number == len(groups) - 1:
            body = f"{heads}\n{body}\n{entry}"
        units[f"unit_{len(units)}{dialect.suffix}"] = unit_text(body, dialect, is_alone=is_alone)
    return units


def _groups(texts: Mapping[str, str], entry: int, at_a_time: int, most: int) -> list[list[str]]:
    """Divide kernels into groups of similar size; the last one has room for the entry, of so many
    characters. Each kernel in turn, the longest first, joins the shortest group."""
    total = sum(map(len, texts.values())) + entry
    wanted = max(min(at_a_time, total // _SHORT_UNIT), -(-total // _UNIT))
    number = max(1, min(most, wanted, len(texts)))
    sizes = [*[0] * (number - 1), entry]
    chosen: dict[str, int] = {}
    for name in sorted(texts, key=lambda name: -len(texts[name])):
        shortest = min(range(number), key=sizes.__getitem__)
        chosen[name] = shortest
        sizes[shortest] += len(texts[name])
    return [[texts[name] for name in texts if chosen[name] == place] for place in range(number)]


def _prototype(text: str) -> str:
    """Render a kernel's declaration."""
    return re.match(r"[^{]*", text)[0].rstrip() + ";\n"  # type: ignore[index]
