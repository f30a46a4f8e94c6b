"""Build a plan step by step: buffers, copies, kernel launches and nested lists of steps.

This is the interface that control flow has to the lowering (``block`` in
:mod:`backend_c.lower.control`); how computations become steps is in
:mod:`backend_c.lower.lowering`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

import numpy as np

from backend_c.ir.loop_ir import Kernel
from backend_c.ir.settings import Settings
from backend_c.lower.columns import Columns
from backend_c.lower.kernel_arguments import inputs_of
from backend_c.lower.kernel_builder import KernelBuilder
from backend_c.lower.matrix_product import matrix_product
from backend_c.lower.plan import (
    Buffer,
    Copy,
    Launch,
    Origin,
    Plan,
    ProductOf,
    Step,
    Value,
    View,
)
from hlo.module import Computation, Module
from hlo.passes.common_subexpressions import computation_key
from hlo.types import S32, ArrayShape, Shape, element_type_of
from hlo.values import zeros_of


class Block:
    """Hold the plan under construction, and the list of steps that :meth:`emit` appends to."""

    def __init__(
        self,
        module: Module,
        kernel_columns: Columns,
        settings: Settings,
        launched: Callable[[Kernel], object],
    ) -> None:
        self.plan, self.settings = Plan(), settings
        self._launched = launched
        self.steps: list[Step] = []
        self._module, self._columns = module, kernel_columns
        self._kernels: dict[Hashable, Kernel] = {}  # those written, by what they are written from
        # Operands of the instruction being lowered that nothing needs later: it may overwrite them.
        # Few instructions ask.
        self.reusable: Callable[[], set[Buffer]] = cache(set)
        self._owned: frozenset[Buffer] = frozenset()
        self.origin = Origin()  # of the steps being written
        self.outside: set[Buffer] = set()  # arguments and constants: not in the workspace

    def constant(self, values: np.ndarray) -> Buffer:
        """Add a buffer with given values to the plan: part of the program's data."""
        element_type = element_type_of(values.dtype)
        assert element_type is not None, values.dtype
        buffer = self.plan.buffer(ArrayShape(element_type, values.shape))
        self.plan.constants.append((buffer, values))
        self.outside.add(buffer)
        return buffer

    def launch(
        self,
        computation: Computation,
        operands: list[Value],
        patched: Buffer | None = None,
        placed: View | None = None,
    ) -> Value:
        """Emit the launch of one kernel: elemental instructions around at most one hero.

        ``patched`` is a buffer that already has an operand's elements: the kernel writes only its
        update there (dynamic-update-slice in place). ``placed`` is the view that the result goes
        to.
        """
        shape = computation.root_instruction.shape
        result = patched or (self.view(shape, placed) if placed else self.new_buffers(shape))
        outputs = self.buffers_of(result)
        kernel, inputs = self._built(computation, operands, outputs, is_patch=patched is not None)
        if not kernel.body:
            return result  # nothing but empty arrays
        self.plan.kernels.append(kernel)
        self._launched(kernel)
        written = [b for o in outputs for b in ((o, o.sizes) if o.sizes else (o,))]
        scratch = [
            self.plan.buffer(ArrayShape(array.element_type, (array.elements,)))
            for array in kernel.scratch
        ]
        inputs = (*inputs, *map(self.constant, kernel.tables))
        number = len(self.plan.kernels) - 1
        origin = replace(self.origin, computes=computation, in_place=patched is not None)
        product = self._product(computation, operands, outputs)
        launch = Launch(number, inputs, tuple(written), tuple(scratch), origin, product)
        self.steps.append(launch)
        return result

    def _product(
        self, computation: Computation, operands: Sequence[Value], outputs: Sequence[Buffer]
    ) -> ProductOf | None:
        """Return the product of dense matrices that a launch is; None if it is another thing."""
        product = matrix_product(computation, self.settings)
        if product is None:
            return None
        lhs, rhs = (operands[factor.parameter] for factor in (product.lhs, product.rhs))
        assert isinstance(lhs, Buffer) and isinstance(rhs, Buffer), "operands of a dot are arrays"
        is_dense = all(buffer.view is None for buffer in (lhs, rhs, *outputs))
        return ProductOf(product, lhs, rhs, outputs[0]) if is_dense else None

    def _built(
        self,
        computation: Computation,
        operands: list[Value],
        outputs: Sequence[Buffer],
        *,
        is_patch: bool,
    ) -> tuple[Kernel, tuple[Buffer, ...]]:
        """Return the kernel of a launch and its inputs.

        Equal computations on operands that are alike have one kernel, written once: models repeat
        their layers.
        """
        builder = KernelBuilder(
            self._module, self._columns, computation, self.settings, is_patch=is_patch
        )
        if is_patch:
            # The buffer that it updates is none of its inputs, as `inputs_of` would have it.
            return builder.build(operands, outputs)
        # Of results, what they are windows of.
        numbers: dict[Buffer, int] = {}
        key = computation_key(computation), _pattern(operands, numbers), _pattern(outputs, numbers)
        if key not in self._kernels:
            self._kernels[key], _ = builder.build(operands, outputs)
        return self._kernels[key], inputs_of(operands)

    # Building blocks of control flow

    def emit(self, step: Step) -> None:
        """Append a step."""
        self.steps.append(step)

    def give(self, value: Value) -> None:
        """Mark a value's buffers as arguments that the computation evaluated next may overwrite."""
        self._owned = frozenset(self.buffers_of(value))

    def keep(self, value: Value) -> None:
        """Forbid overwriting a value that the instruction being lowered returns unchanged."""
        self.reusable().difference_update(self.buffers_of(value))

    @contextmanager
    def collected_steps(self) -> Iterator[list[Step]]:
        """Collect the steps emitted inside in a list of their own: the body of a loop or branch."""
        outside, self.steps = self.steps, []
        yield self.steps
        self.steps = outside

    def new_buffers(self, shape: Shape) -> Value:
        """Allocate buffers for a value of a shape."""
        if not isinstance(shape, ArrayShape):
            return tuple(map(self.new_buffers, shape.elements))
        if not shape.element_type.is_array:
            return ()  # tokens carry nothing
        sizes = self.plan.buffer(ArrayShape(S32, (shape.rank,))) if shape.is_dynamic else None
        return self.plan.buffer(ArrayShape(shape.element_type, shape.dims, shape.dynamic), sizes)

    def view(self, shape: Shape, place: View) -> Buffer:
        """Add a buffer for an array that lies at ``place`` within another buffer."""
        assert isinstance(shape, ArrayShape)
        return self.plan.buffer(ArrayShape(shape.element_type, shape.dims), None, place)

    def zeros(self, shape: Shape) -> Value:
        """Add constant buffers of zeros for a value of a shape."""
        if not isinstance(shape, ArrayShape):
            return tuple(map(self.zeros, shape.elements))
        if not shape.element_type.is_array:
            return ()
        return self.constant(zeros_of(shape.dims, shape.element_type.numpy))

    def allocate_like(self, value: Value) -> Value:
        """Allocate buffers of the shapes of another value."""
        if isinstance(value, tuple):
            return tuple(map(self.allocate_like, value))
        return self.new_buffers(value.shape)

    def fresh_copy(self, value: Value, why: str) -> Value:
        """Copy all buffers of a value to new ones; ``why`` is for explanations."""
        if isinstance(value, tuple):
            return tuple(self.fresh_copy(part, why) for part in value)
        return self.copied(value, why)

    def taken(self, value: Value) -> Value:
        """Take over an operand: return its buffers if it is dead afterwards, else copies."""
        if isinstance(value, tuple):
            return tuple(map(self.taken, value))
        if value in self.reusable():
            self.reusable().discard(value)
            return value
        return self.copied(value, "it is overwritten here, and needed elsewhere as it was")

    def copied(self, source: Buffer, why: str) -> Buffer:
        """Copy a buffer to a new one; ``why`` is for explanations."""
        target = self.new_buffers(source.shape)
        assert isinstance(target, Buffer)
        self.copy(source, target, why)
        return target

    def copy(self, source: Buffer, target: Buffer, why: str) -> None:
        """Copy a buffer to another, with its actual sizes; ``why`` is for explanations."""
        origin = replace(self.origin, why=why)
        self.steps.append(Copy(source, target, origin))
        if source.sizes is not None and target.sizes is not None:
            self.steps.append(Copy(source.sizes, target.sizes, origin))

    def buffers_of(self, value: Value) -> list[Buffer]:
        """Return the arrays of a value in order, without the buffers of their sizes."""
        if isinstance(value, Buffer):
            return [value]
        return [buffer for element in value for buffer in self.buffers_of(element)]


def _pattern(value: Value | Sequence[Value], numbers: dict[Buffer, int]) -> Hashable:
    """Return the part of a kernel's cache key that its operands contribute.

    Two lists of operands have equal patterns if the same positions share a buffer, and the shapes
    and memory dims (of views) are equal.
    """
    if isinstance(value, Buffer):
        number = numbers.setdefault(value, len(numbers))
        sizes = None if value.sizes is None else _pattern(value.sizes, numbers)
        return number, value.shape, sizes, value.memory_dims
    return tuple(_pattern(part, numbers) for part in value)
