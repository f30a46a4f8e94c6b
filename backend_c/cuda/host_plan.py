"""Define the host plan, what the host does on a device to run a module: launches, copies, fills,
loops and branches whose conditions it reads back.

There is one for every way to run: :mod:`backend_c.projects.cuda_project` prints it as C, the
runtime (:mod:`backend_c.native.cuda_executable`) walks through it on a GPU, and on emulated
threads.
All memory is the arguments', the results', one block of constants and one workspace.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from backend_c.cuda.counted_loops import Counts
from backend_c.cuda.geometry import Geometry, geometry
from backend_c.cuda.threads import launch_shape
from backend_c.ir.gpu import LARGEST_BLOCK
from backend_c.lower.buffers import ALIGNMENT
from backend_c.lower.matrix_product import MatrixProduct
from backend_c.lower.plan import (
    Branch,
    Buffer,
    Copy,
    Exchange,
    Launch,
    Multiply,
    Origin,
    Plan,
    Repeat,
    Step,
    in_order,
)
from backend_c.render.c_types import memory_type
from backend_c.render.statements import block_size
from backend_c.render.translation_units import (
    RANDOM_KERNEL,
    Place,
    Program,
    stored_bytes,
    with_sizes,
)
from hlo.types import PRED, ArrayShape

RANDOM_BYTES = 32  # of the struct hlo_seed, runtime/hlo_random.h
# What NVIDIA recommends for sm_90; one for all products of a program, which follow each other.
LIBRARY_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Operand:
    """Describe an array argument of a kernel: its name there, its address, its elements.

    ``c_type`` is the type of an element in memory.
    """

    name: str
    place: Place
    c_type: str
    elements: int
    is_written: bool


@dataclass(frozen=True, slots=True)
class LaunchKernel:
    """Launch a kernel on operands; ``origin`` is the instruction that it computes.

    ``number`` counts the launches in the order of the text. ``shape`` constrains the geometry: a
    ``grid`` of blocks of any size, the same of whole ``warps``, one ``block`` of any size, a
    ``single`` thread. ``most_threads`` is the largest block that the kernel is compiled for.
    ``takes_seed``: the seed of the run is one more argument, by value.
    """

    number: int
    kernel: str
    operands: tuple[Operand, ...]
    shape: str
    geometry: Geometry
    origin: Origin
    takes_seed: bool = False
    most_threads: int = LARGEST_BLOCK


@dataclass(frozen=True, slots=True)
class MultiplyMatrices:
    """Multiply matrices by cuBLASLt if it is found and takes the product, else by ``launches``.

    ``number`` counts the products in the order of the text. The library may use LIBRARY_BYTES at
    ``workspace``.
    """

    number: int
    product: MatrixProduct
    lhs: Place
    rhs: Place
    result: Place
    workspace: Place
    launches: tuple[LaunchKernel, ...]
    origin: Origin


@dataclass(frozen=True, slots=True)
class CopyBytes:
    """Copy bytes on the device."""

    source: Place
    target: Place
    bytes: int


@dataclass(frozen=True, slots=True)
class FillBytes:
    """Set bytes on the device to one value."""

    target: Place
    value: int
    bytes: int


@dataclass(frozen=True, slots=True)
class HostLoop:
    """Loop: run ``condition``, read the byte at ``predicate``; while it is not 0, run ``body``,
    repeat.

    ``number`` counts the reads by the host, in the order of the text. With a known trip count
    ``trips`` the body runs that often, and nothing is read.
    """

    number: int
    condition: tuple[HostStep, ...]
    predicate: Place
    body: tuple[HostStep, ...]
    trips: int | None = None


@dataclass(frozen=True, slots=True)
class HostSwitch:
    """Read an int32 (or with ``is_pred`` a byte) back and run the case of that number.

    A number out of range is the last case's; of a byte, 0 is case 1 and all others case 0.
    """

    number: int
    selector: Place
    is_pred: bool
    cases: tuple[tuple[HostStep, ...], ...]


HostStep = LaunchKernel | MultiplyMatrices | CopyBytes | FillBytes | HostLoop | HostSwitch


@dataclass(frozen=True, slots=True)
class HostPlan:
    """Hold the host program of a module: its steps, and the sizes of all memory.

    ``arguments`` and ``results`` are the shapes in memory, in the order of their numbers: the
    actual sizes of a bounded array are an s32 array after it. ``constants`` are to be copied to the
    device once; the workspace's contents before a run do not matter. Both start at a multiple of 64
    bytes.
    """

    steps: tuple[HostStep, ...]
    arguments: tuple[ArrayShape, ...]
    results: tuple[ArrayShape, ...]
    constants: bytes
    workspace_bytes: int
    uses_seed: bool


def host_plan(plan: Plan, program: Program) -> HostPlan:
    """Build the host plan of a plan whose kernels are split into phases and rendered."""
    uses_seed = any(kernel.uses_seed for kernel in plan.kernels)
    end = program.workspace_bytes
    has_products = any(isinstance(step, Multiply) for _, step in in_order(plan.steps))
    random, end = _behind(end, RANDOM_BYTES * uses_seed)
    library, end = _behind(end, LIBRARY_BYTES * has_products)
    steps = _Steps(plan, program, random, library)
    made = [*steps.starting(), *steps.of(plan.steps)] if uses_seed else steps.of(plan.steps)
    return HostPlan(
        tuple(made),
        tuple(buffer.shape for buffer in with_sizes(plan.arguments)),
        tuple(buffer.shape for buffer in with_sizes(plan.results)),
        program.constants,
        end,
        uses_seed,
    )


def _behind(end: int, size: int) -> tuple[Place, int]:
    """Return the place of some bytes behind the workspace, and where that ends then."""
    start = -(-end // ALIGNMENT) * ALIGNMENT
    return Place("workspace", start), start + size if size else end


class _Steps:
    """Translate the steps of a plan into those of the host."""

    def __init__(self, plan: Plan, program: Program, random: Place, library: Place) -> None:
        self._plan, self._program, self._counts = plan, program, Counts(plan)
        self._library, self._products = library, itertools.count()
        self._random = Operand("seed", random, "hlo_seed", 1, is_written=True)
        self._launches, self._readings = itertools.count(), itertools.count()
        self._filled = {b: byte for b, value in plan.constants if (byte := _one_byte(value)) >= 0}

    def starting(self) -> Iterator[HostStep]:
        """Yield the launch that seeds the random state."""
        number, given = next(self._launches), (self._random,)
        yield LaunchKernel(
            number, RANDOM_KERNEL, given, "single", Geometry(1, 1), Origin(), takes_seed=True
        )

    def of(self, steps: Sequence[Step]) -> tuple[HostStep, ...]:
        """Translate a list of steps."""
        return tuple(made for n, step in enumerate(steps) for made in self._step(step, steps[:n]))

    def _step(self, step: Step, before: Sequence[Step]) -> Iterator[HostStep]:
        places = self._program.places
        match step:
            case Launch():
                yield self._launch(step)
            case Multiply():
                yield self._multiply(step)
            case Copy(source, target):
                if source in self._filled and source.bytes:
                    yield FillBytes(places[target], self._filled[source], source.bytes)
                elif source.bytes:
                    yield CopyBytes(places[source], places[target], source.bytes)
            case Exchange():
                raise AssertionError("launches have fixed addresses: Settings.least_exchanged")
            case Repeat(condition, predicate, body):
                number = next(self._readings)
                trips = self._counts.trips(step, before)
                asked, done = self.of(condition), self.of(body)
                yield HostLoop(number, asked, places[predicate], done, trips)
            case Branch(selector, cases):
                number, is_pred = next(self._readings), selector.shape.element_type is PRED
                inner = tuple(self.of(case) for case in cases)
                yield HostSwitch(number, places[selector], is_pred, inner)

    def _multiply(self, step: Multiply) -> MultiplyMatrices:
        number, of, places = next(self._products), step.product, self._program.places
        own = [one for one in self.of(step.launches) if isinstance(one, LaunchKernel)]
        at = places[of.lhs], places[of.rhs], places[of.result], self._library
        return MultiplyMatrices(number, of.product, *at, tuple(own), step.origin)

    def _launch(self, step: Launch) -> LaunchKernel:
        kernel, name = self._plan.kernels[step.kernel], self._program.kernel_names[step.kernel]
        arrays = (*kernel.inputs, *kernel.outputs, *kernel.scratch)
        buffers = (*step.inputs, *step.outputs, *step.scratch)
        operands = [
            self._operand(array.name, buffer, is_written=n >= len(kernel.inputs))
            for n, (array, buffer) in enumerate(zip(arrays, buffers, strict=True))
        ]
        given = (*operands, *[self._random] * kernel.uses_seed)
        size, number = geometry(kernel), next(self._launches)
        most, shape = block_size(kernel) or LARGEST_BLOCK, launch_shape(kernel)
        return LaunchKernel(number, name, given, shape, size, step.origin, most_threads=most)

    def _operand(self, name: str, buffer: Buffer, is_written: bool) -> Operand:
        place, shape = self._program.places[buffer], buffer.shape
        return Operand(name, place, memory_type(shape.element_type), shape.elements, is_written)


def _one_byte(value: np.ndarray) -> int:
    """Return the byte that every byte of an array equals; -1 if there is none."""
    data = stored_bytes(value)
    return data[0] if data and data.count(data[:1]) == len(data) else -1


def in_text_order(steps: Sequence[HostStep]) -> Iterator[HostStep]:
    """Yield all steps, each before those inside it."""
    for step in steps:
        yield step
        yield from in_text_order(inner(step))


def inner(step: HostStep) -> tuple[HostStep, ...]:
    """Return the steps inside a step."""
    match step:
        case HostLoop(_, condition, _, body):
            return (*condition, *body)
        case HostSwitch(_, _, _, cases):
            return tuple(one for case in cases for one in case)
        case MultiplyMatrices():
            return step.launches
        case _:
            return ()


def launches(host: HostPlan) -> tuple[LaunchKernel, ...]:
    """Return the launches in the order of their numbers."""
    return tuple(step for step in in_text_order(host.steps) if isinstance(step, LaunchKernel))


def products(host: HostPlan) -> tuple[MultiplyMatrices, ...]:
    """Return the products of matrices in the order of their numbers."""
    return tuple(step for step in in_text_order(host.steps) if isinstance(step, MultiplyMatrices))
