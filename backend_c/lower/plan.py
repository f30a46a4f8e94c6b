"""What a compiled module does at run time, as data: buffers, kernels, and steps over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from backend_c.ir.loop_ir import Kernel
from hlo.types import ArrayShape


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """The memory of one array value, row-major: one object each. ``sizes`` is the s32 buffer with
    the actual size of every dimension, if some are bounded."""

    number: int
    shape: ArrayShape
    sizes: Buffer | None = None

    @property
    def bytes(self) -> int:
        return self.shape.elements * self.shape.element_type.numpy.itemsize


Value = Buffer | tuple["Value", ...]


@dataclass(frozen=True, slots=True)
class Launch:
    """Run a kernel on buffers: its inputs, outputs and scratch arrays in order."""

    kernel: int
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    scratch: tuple[Buffer, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    source: Buffer
    target: Buffer


@dataclass(frozen=True, slots=True)
class Repeat:
    """Steps of the condition, then, while ``predicate`` holds, those of the body, and again."""

    condition: tuple[Step, ...]
    predicate: Buffer
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """One of ``cases``: by an s32 index (out of range: the last) or a pred (true: the first)."""

    selector: Buffer
    cases: tuple[tuple[Step, ...], ...]


Step = Launch | Copy | Repeat | Branch


@dataclass(slots=True)
class Plan:
    """A module lowered. Every buffer is an argument, a result, a constant or lies in the workspace
    at its offset."""

    kernels: list[Kernel] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    steps: tuple[Step, ...] = ()
    arguments: list[Buffer] = field(default_factory=list)
    results: list[Buffer] = field(default_factory=list)
    constants: list[tuple[Buffer, np.ndarray]] = field(default_factory=list)

    def buffer(self, shape: ArrayShape, sizes: Buffer | None = None) -> Buffer:
        made = Buffer(len(self.buffers), shape, sizes)
        self.buffers.append(made)
        return made


def mapped(steps: tuple[Step, ...], change: Callable[[Step], tuple[Step, ...]]) -> tuple[Step, ...]:
    """Steps with each one replaced, those inside loops and branches first."""
    result: list[Step] = []
    for step in steps:
        match step:
            case Repeat(condition, predicate, body):
                inner: Step = Repeat(mapped(condition, change), predicate, mapped(body, change))
            case Branch(selector, cases):
                inner = Branch(selector, tuple(mapped(case, change) for case in cases))
            case _:
                inner = step
        result.extend(change(inner))
    return tuple(result)
