"""Define the plan: a lowered module as data, with its buffers, kernels, and steps at run time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from backend_c.ir.loop_ir import Kernel
from backend_c.lower.matrix_product import MatrixProduct
from hlo.module import Computation
from hlo.types import ArrayShape


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """Represent the memory of one array value, row-major; compared by identity.

    ``sizes`` is the s32 buffer with the actual size of every dimension, if some are bounded.
    A buffer with a ``view`` has no memory of its own (:mod:`backend_c.lower.views`).
    """

    number: int
    shape: ArrayShape
    sizes: Buffer | None = None
    view: View | None = None

    @property
    def bytes(self) -> int:
        """Return the size of the array in bytes."""
        return self.shape.elements * self.shape.element_type.numpy.itemsize

    @property
    def base(self) -> Buffer:
        """Return the buffer in whose memory the array lies."""
        return self if self.view is None else self.view.base

    @property
    def memory_dims(self) -> tuple[int, ...]:
        """Return the dims whose row-major strides linearise an index; a view has its own."""
        return self.shape.dims if self.view is None else self.view.dims


@dataclass(frozen=True, slots=True)
class View:
    """Place an array within ``base``, a buffer of the same element type.

    Its first element is ``start`` elements after that of the base; ``dims`` give its strides.
    """

    base: Buffer
    start: int
    dims: tuple[int, ...]


Value = Buffer | tuple["Value", ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """Name the instruction that a step was lowered from, for explanations; no code depends on it.

    ``computation`` and ``instruction`` are names after all passes. For a launch, ``computes`` is
    the kernel's computation, and ``in_place`` whether it only updates its result. For a copy,
    ``why`` is the reason for it. ``joined`` are the origins of launches that were merged into this
    one, ``loops`` those of while loops whose trips the kernel itself makes, outermost first.
    """

    computation: str = ""
    instruction: str = ""
    computes: Computation | None = None
    in_place: bool = False
    why: str = ""
    joined: tuple[Origin, ...] = ()
    loops: tuple[Origin, ...] = ()


@dataclass(frozen=True, slots=True)
class Launch:
    """Run a kernel on buffers: its inputs, outputs and scratch arrays in order.

    ``product`` is the product of matrices that the kernel computes and nothing else; a target that
    has a library for those makes a :class:`Multiply` of it.
    """

    kernel: int
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    scratch: tuple[Buffer, ...]
    origin: Origin = field(default=Origin(), compare=False)
    product: ProductOf | None = None


@dataclass(frozen=True, slots=True)
class ProductOf:
    """Name the buffers of a product of matrices."""

    product: MatrixProduct
    lhs: Buffer
    rhs: Buffer
    result: Buffer


@dataclass(frozen=True, slots=True)
class Multiply:
    """Multiply matrices by a library where there is one, else by ``launches``."""

    product: ProductOf
    launches: tuple[Step, ...]
    origin: Origin = field(default=Origin(), compare=False)


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy a buffer to another of the same size."""

    source: Buffer
    target: Buffer
    origin: Origin = field(default=Origin(), compare=False)


@dataclass(frozen=True, slots=True)
class Exchange:
    """Swap the addresses of two buffers of the same size: the target then has the source's value.

    The source's value is undefined afterwards.
    """

    source: Buffer
    target: Buffer
    origin: Origin = field(default=Origin(), compare=False)


@dataclass(frozen=True, slots=True)
class Repeat:
    """Loop: run ``condition``; while ``predicate`` then holds, run ``body`` and start again."""

    condition: tuple[Step, ...]
    predicate: Buffer
    body: tuple[Step, ...]
    origin: Origin = field(default=Origin(), compare=False)


@dataclass(frozen=True, slots=True)
class Branch:
    """Switch: run one of ``cases``.

    The selector is an s32 index (out of range: the last case) or a pred (true: the first case).
    """

    selector: Buffer
    cases: tuple[tuple[Step, ...], ...]
    origin: Origin = field(default=Origin(), compare=False)


Step = Launch | Multiply | Copy | Exchange | Repeat | Branch


@dataclass(slots=True)
class Plan:
    """Represent a lowered module.

    Every buffer is an argument, a result, a constant, a view of another one, or lies in the
    workspace at an offset that :mod:`backend_c.lower.buffers` allocates.
    """

    kernels: list[Kernel] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    steps: tuple[Step, ...] = ()
    arguments: list[Buffer] = field(default_factory=list)
    results: list[Buffer] = field(default_factory=list)
    constants: list[tuple[Buffer, np.ndarray]] = field(default_factory=list)

    def buffer(
        self, shape: ArrayShape, sizes: Buffer | None = None, view: View | None = None
    ) -> Buffer:
        """Add a buffer for an array of a shape."""
        buffer = Buffer(len(self.buffers), shape, sizes, view)
        self.buffers.append(buffer)
        return buffer


def with_steps(step: Step, change: Callable[[tuple[Step, ...]], tuple[Step, ...]]) -> Step:
    """Return a step with each list of steps inside it replaced by what ``change`` makes of it."""
    match step:
        case Repeat(condition, _, body):
            return replace(step, condition=change(condition), body=change(body))
        case Branch(_, cases):
            return replace(step, cases=tuple(map(change, cases)))
        case Multiply(_, launches):
            return replace(step, launches=change(launches))
        case _:
            return step


def map_steps(
    steps: tuple[Step, ...], change: Callable[[Step], tuple[Step, ...]]
) -> tuple[Step, ...]:
    """Replace each step by those that ``change`` makes of it, inner steps first."""
    result: list[Step] = []
    for step in steps:
        result.extend(change(with_steps(step, lambda inner: map_steps(inner, change))))
    return tuple(result)


def with_launched_kernels(plan: Plan) -> Plan:
    """Remove kernels that no step launches, and renumber the others in the order of launches."""
    numbers: dict[int, int] = {}
    for _, step in in_order(plan.steps):
        if isinstance(step, Launch):
            numbers.setdefault(step.kernel, len(numbers))

    def renumbered(step: Step) -> tuple[Step, ...]:
        if isinstance(step, Launch):
            return (replace(step, kernel=numbers[step.kernel]),)
        return (step,)

    kernels = [plan.kernels[number] for number in numbers]
    return replace(plan, kernels=kernels, steps=map_steps(plan.steps, renumbered))


def inner_steps(step: Step) -> tuple[Step, ...]:
    """Return the steps directly inside a loop, a branch or a product, in order."""
    match step:
        case Repeat(condition, _, body):
            return (*condition, *body)
        case Branch(_, cases):
            return tuple(inner for case in cases for inner in case)
        case Multiply(_, launches):
            return launches
        case _:
            return ()


def buffers_of(step: Step) -> tuple[Buffer, ...]:
    """Return the buffers that a step itself names, without those of steps inside it."""
    match step:
        case Launch(_, inputs, outputs, scratch):
            return (*inputs, *outputs, *scratch)
        case Multiply(product):
            return (product.lhs, product.rhs, product.result)
        case Copy(source, target) | Exchange(source, target):
            return (source, target)
        case Repeat(_, predicate, _):
            return (predicate,)
        case Branch(selector, _):
            return (selector,)


def in_order(steps: Sequence[Step], depth: int = 0) -> Iterator[tuple[int, Step]]:
    """Yield all steps in the order of the text, each before those inside it, with their depth."""
    for step in steps:
        yield depth, step
        yield from in_order(inner_steps(step), depth + 1)


def has_products(plan: Plan) -> bool:
    """Return whether a library may compute a product of matrices of a plan."""
    steps = (step for _, step in in_order(plan.steps))
    return any(isinstance(step, Launch) and step.product is not None for step in steps)


def read_and_changed(step: Step) -> tuple[set[Buffer], set[Buffer]]:
    """Return the buffers that a step and those inside it read, and those that they change.

    What is changed may be read, too.
    """
    read: set[Buffer] = set()
    changed: set[Buffer] = set()
    for _, inner in in_order((step,)):
        match inner:
            case Launch(_, inputs, outputs, scratch):
                read.update(inputs)
                changed.update(outputs, scratch)
            case Multiply(product):
                read |= {product.lhs, product.rhs}
                changed.add(product.result)
            case Copy(source, target):
                read.add(source)
                changed.add(target)
            case Exchange(source, target):
                changed |= {source, target}
            case Repeat(_, predicate, _):
                read.add(predicate)
            case Branch(selector, _):
                read.add(selector)
    return read, changed
