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
from backend_c.lower.buffers import Workspace, exchanged
from backend_c.lower.plan import (
    Branch,
    Buffer,
    Copy,
    Exchange,
    Launch,
    Multiply,
    Plan,
    Repeat,
    Step,
    View,
)
from backend_c.render.c_types import memory_type
from backend_c.render.dialect import EMBEDDED, OPENMP, Dialect
from backend_c.render.distinct_kernels import DistinctKernels
from backend_c.render.elementary_functions import definitions
from backend_c.render.statements import LAUNCH_BOUNDS, Body
from backend_c.render.timers import DEFINITIONS, Timers, count
from hlo.types import PRED, ArrayShape, ElementType, element_type_of

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
_UNIT = 12_000  # characters in one translation unit: below, starting gcc once more costs more
_UNITS = 8  # at most: more than most machines compile at a time
_FEW = 8  # elements that are copied one by one
_INDENT = "    "
_SHARED = '__attribute__((visibility("hidden"))) void'  # a kernel that another unit calls


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


def render_plan(
    plan: Plan,
    dialect: Dialect,
    workspace: Workspace | None = None,
    *,
    timed: bool = False,
    body: type[Body] = Body,
) -> Program:
    """Render a plan; ``workspace`` is its allocation, by default the densest known.

    ``timed``: the entry times its steps (:mod:`backend_c.render.timers`). ``body`` renders the
    statements of kernels.
    """
    kernels = DistinctKernels(dialect, body)
    allocate = buffers.allocate_tightly if dialect is EMBEDDED else buffers.allocate
    program, entry = _rendered(plan, kernels, workspace or allocate(plan), timed=timed)
    entry = f"{ENTRY} {entry}" if dialect.has_entry else _started([plan])
    entry = f"{DEFINITIONS}\n{entry}" if timed else entry
    return replace(program, sources=_units(kernels.texts(), entry, dialect))


def render_plans(
    plans: Sequence[Plan],
    dialect: Dialect,
    allocate: Callable[[Plan], Workspace] = buffers.allocate,
) -> list[Program]:
    """Render several plans as one translation unit, for which a compiler is started once."""
    kernels = DistinctKernels(dialect)
    rendered = [_rendered(plan, kernels, allocate(plan)) for plan in plans]
    if not dialect.has_entry:
        sources = _units(kernels.texts(), _started(plans), dialect, most=1)
        return [replace(one, sources=sources) for one, _ in rendered]
    entries = [
        f"static void hlo_entry_{n}{_PARAMETERS} {entry}" for n, (_, entry) in enumerate(rendered)
    ]
    names = "".join(f"{_INDENT}hlo_entry_{n},\n" for n in range(len(rendered)))
    table = f"void (*const hlo_entries[]){_PARAMETERS}"
    table = f"{table} = {{\n{names}}};\n"
    sources = _units(kernels.texts(), "\n".join([*entries, table]), dialect, most=1)
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
    return program, _Entry(pointers, names, plan, Timers(times, pairs)).text()


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


def _view_pointer(base: str, buffer: Buffer, view: View) -> str:
    """Return the C expression of the address of a view, from that of its base."""
    offset = view.start * buffer.shape.element_type.numpy.itemsize
    if not offset:
        return base
    bytes_of = {"arguments": "(const unsigned char *)", "results": "(unsigned char *)"}
    return f"({bytes_of.get(base.partition('[')[0], '')}{base} + {offset})"


def _units(
    texts: Mapping[str, str], entry: str, dialect: Dialect, most: int = _UNITS
) -> dict[str, str]:
    """Group kernels into translation units of similar size; the last one has the entry.

    Units are compiled in parallel. Kernels that another unit calls have hidden visibility instead
    of being static.
    """
    total = sum(map(len, texts.values())) + len(entry)
    # Only OpenMP C is compiled by us, in parallel units; other targets are one file.
    number = min(most, -(-total // _UNIT)) if dialect is OPENMP else 1
    groups: list[list[str]] = [[]]
    size = 0
    for text in texts.values():
        if size * number >= total * len(groups):
            groups.append([])
        groups[-1].append(text)
        size += len(text)
    heads = "".join(_prototype(text) for text in texts.values()) if len(groups) > 1 else ""
    units = {}
    for number, group in enumerate(groups):
        body = "\n".join(group)
        if number == len(groups) - 1:
            body = f"{heads}\n{body}\n{entry}"
        functions = definitions(body, dialect)
        blocks = (_prologue(dialect, functions + body), functions, body)
        units[f"unit_{number}{dialect.suffix}"] = "\n".join(filter(None, blocks))
    if len(groups) > 1:
        units = {
            name: text.replace(f"\n{dialect.kernel} kernel_", f"\n{_SHARED} kernel_")
            for name, text in units.items()
        }
    return units


def _prologue(dialect: Dialect, code: str) -> str:
    """Render the includes that a unit's code needs."""
    needed = [header for header, name in dialect.includes if name in code]
    includes = "".join(f'#include "{header}"\n' for header in needed)
    return f"{includes}\n{dialect.prologue}"


def _prototype(text: str) -> str:
    """Render a kernel's declaration."""
    return re.match(r"[^{]*", text)[0].rstrip() + ";\n"  # type: ignore[index]


class _Entry:
    """Render the steps of a plan as the body of its entry point."""

    def __init__(
        self,
        pointers: Mapping[Buffer, str],
        names: Sequence[str],
        plan: Plan,
        timers: Timers,
    ) -> None:
        self._groups = exchanged(plan.steps)
        self._moving = sorted((b for group in self._groups for b in group), key=lambda b: b.number)
        self._starts = pointers
        places = {buffer: f"place_{n}" for n, buffer in enumerate(self._moving)}
        self._pointers, self._names, self._plan = {**pointers, **places}, names, plan
        self._pointers |= {
            buffer: _view_pointer(self._pointers[view.base], buffer, view)
            for buffer in plan.buffers
            if (view := buffer.view) is not None and view.base in self._pointers
        }
        self._timers = timers

    def text(self) -> str:
        """Render the body."""
        lines = [line for step in self._plan.steps for line in self._step(step)]
        begin, end = self._places()
        lines = [*begin, *self._timers.started(), *lines, *end, *self._timers.ended()]
        unused = [
            f"(void){name};"
            for name in ("arguments", "results", "constants", "workspace")
            if not any(name in line for line in lines)
        ]
        seed = ["hlo_seed random;", "hlo_seed_start(&random, seed);"]
        if not any(k.uses_seed for k in self._plan.kernels):
            seed = ["(void)seed;"]
        body = "".join(f"{_INDENT}{line}\n" for line in (*unused, *seed, *lines))
        return f"{{\n{body}}}\n"

    def _places(self) -> tuple[list[str], list[str]]:
        """Render the pointer variables of exchanged buffers, and the copies of those that are
        results.

        A result that ends up elsewhere is copied to the caller's memory.
        """
        begin = [
            f"unsigned char *{self._pointers[buffer]} = (unsigned char *){self._starts[buffer]};"
            for buffer in self._moving
        ]
        results = dict.fromkeys(b for b in self._plan.results if b in self._moving)
        left = [[b for b in results if b in group] for group in self._groups]
        return begin, [
            line
            for group in left
            for n, buffer in enumerate(group)
            for line in self._settled(buffer, group[n + 1 :])
        ]

    def _settled(self, result: Buffer, others: Sequence[Buffer]) -> Iterator[str]:
        """Yield lines that bring a result to the caller's memory. What is there may be one of the
        ``others``, which then goes to where the result was."""
        name, start = self._pointers[result], self._starts[result]
        yield f"if ({name} != {start}) {{"
        for other in others:
            there = self._pointers[other]
            yield f"{_INDENT}if ({there} == {start}) {{"
            yield f"{2 * _INDENT}for (int64_t n = 0; n < {result.bytes}; ++n) {{"
            yield f"{3 * _INDENT}const unsigned char kept = {there}[n];"
            yield f"{3 * _INDENT}{there}[n] = {name}[n];"
            yield f"{3 * _INDENT}{name}[n] = kept;"
            yield f"{2 * _INDENT}}}"
            yield f"{2 * _INDENT}{there} = {name};"
            yield f"{_INDENT}}} else"
        yield f"{_INDENT}memcpy({start}, {name}, {result.bytes});"
        yield "}"

    def _pointer(self, buffer: Buffer, const: bool) -> str:
        """Render a buffer's address as a typed pointer."""
        c_type = memory_type(buffer.shape.element_type)
        return f"({'const ' if const else ''}{c_type} *){self._pointers[buffer]}"

    def _step(self, step: Step) -> list[str]:
        """Render a step."""
        number = self._timers.next()
        match step:
            case Launch():
                return [self._launch(step), *self._timers.noted(number)]
            case Copy(source, target):
                if not source.bytes:
                    return []
                return [*self._copied(source, target), *self._timers.noted(number)]
            case Exchange(source, target):
                here, there = self._pointers[source], self._pointers[target]
                lines = [f"unsigned char *const kept = {here};", f"{here} = {there};",
                         f"{there} = kept;", *self._timers.noted(number)]  # fmt: skip
                return ["{", *(_INDENT + line for line in lines), "}"]
            case Repeat(condition, predicate, body):
                test = f"if (!*{self._pointer(predicate, True)}) break;"
                return ["for (;;) {", *self._steps(condition), f"{_INDENT}{test}",
                        *(_INDENT + line for line in self._timers.counted(number)),
                        *self._steps(body), "}"]  # fmt: skip
            case Branch(selector, cases):
                return [*self._timers.counted(number), *self._branch(selector, cases)]
            case Multiply():
                raise AssertionError("a step of the host: backend_c.cuda.host_plan")

    def _launch(self, step: Launch) -> str:
        """Render the call of a kernel."""
        kernel, name = self._plan.kernels[step.kernel], self._names[step.kernel]
        words = [self._pointer(b, True) for b in step.inputs]
        words += [self._pointer(b, False) for b in (*step.outputs, *step.scratch)]
        words += ["&random"] * kernel.uses_seed
        return f"{name}({', '.join(words)});"

    def _copied(self, source: Buffer, target: Buffer) -> list[str]:
        """Render a copy: ``memcpy``, or element by element for a few elements.

        A wide load of what several narrow stores just wrote would stall (no store forwarding).
        """
        count = source.shape.elements
        if 1 < count <= _FEW:
            into, out_of = self._pointer(target, False), self._pointer(source, True)
            return [f"({into})[{n}] = ({out_of})[{n}];" for n in range(count)]
        return [f"memcpy({self._pointers[target]}, {self._pointers[source]}, {source.bytes});"]

    def _steps(self, steps: Sequence[Step]) -> list[str]:
        """Render steps, indented."""
        return [_INDENT + line for step in steps for line in self._step(step)]

    def _branch(self, selector: Buffer, cases: Sequence[Sequence[Step]]) -> list[str]:
        """Render a branch as a switch, whose default is the last case."""
        value = f"*{self._pointer(selector, True)}"
        is_pred = selector.shape.element_type is PRED
        lines = [f"switch ({f'{value} ? 0 : 1' if is_pred else value}) {{"]
        for number, case in enumerate(cases):
            last = number == len(cases) - 1
            # An index out of range selects the last branch, as HLO defines it.
            lines += ["default: {" if last else f"case {number}: {{"]
            lines += [*self._steps(case), f"{_INDENT}break;", "}"]
        return [*lines, "}"]
