"""Lower scan to a loop over slices: its counter, the slices read, and the outputs stacked.

The counter and the slices are computed by kernels of HLO instructions, built and launched here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.loop_ir import INDEX, Array, Kernel
from backend_c.ir.scope import Scope, apply
from backend_c.lower.block import Block
from backend_c.lower.plan import Buffer, Launch
from hlo.attributes import Attribute
from hlo.literal import Literal
from hlo.module import Computation, Instruction
from hlo.types import PRED, S32, S64, ArrayShape, bounded, is_bounded

_MOST = 2**31 - 1  # slices that s32 counts
_COUNTER = "it is the counter of the scan"


class Slices:
    """Emit the steps of one scan over ``inputs`` along ``dimension``, and hold its loop counter."""

    def __init__(
        self, block: Block, dimension: int, inputs: Sequence[Buffer], is_reverse: bool
    ) -> None:
        self._block, self._dimension = block, dimension
        self._length = inputs[0].shape.dims[dimension]
        self._count = ArrayShape(S32 if self._length <= _MOST else S64)
        self._is_reverse = is_reverse
        self._varies = any(is_bounded(source.shape, dimension) for source in inputs)
        self._actual = self._actual_length(inputs)
        # It is overwritten in each trip, which a constant may not be.
        self._iteration = block.copied(self._number(0), _COUNTER)
        self._position = self._iteration

    def has_next(self) -> Buffer:
        """Emit the loop's predicate: whether there is another slice."""
        operands = [self._iteration, self._actual]
        return self._instruction("compare", ArrayShape(PRED), operands, {"direction": "LT"})

    def start_iteration(self) -> None:
        """Emit the position of this iteration's slice; in reverse from the last slice on."""
        if self._is_reverse:
            left = self._binary("subtract", self._actual, self._iteration)
            self._position = self._binary("subtract", left, self._number(1))

    def end_iteration(self) -> None:
        """Emit the increment of the counter."""
        following = self._binary("add", self._iteration, self._number(1))
        self._block.copy(following, self._iteration, _COUNTER)

    def _number(self, value: int) -> Buffer:
        """Return a constant of the counter's type."""
        return self._block.constant(np.asarray(value, self._count.element_type.numpy))

    def _actual_length(self, inputs: Sequence[Buffer]) -> Buffer:
        """Emit the number of slices: of bounded inputs, that of the shortest."""
        least = self._number(self._length)
        for source in inputs:
            if is_bounded(source.shape, self._dimension):
                dimensions = {"dimensions": (self._dimension,)}
                size = self._instruction(
                    "get-dimension-size", ArrayShape(S32), [source], dimensions
                )
                if self._count.element_type is not S32:
                    size = self._instruction("convert", self._count, [size], {})
                least = self._binary("minimum", least, size)
        return least

    def _binary(self, opcode: str, lhs: Buffer, rhs: Buffer) -> Buffer:
        """Emit a binary instruction on numbers of the counter's type."""
        return self._instruction(opcode, self._count, [lhs, rhs], {})

    def _instruction(
        self,
        opcode: str,
        shape: ArrayShape,
        operands: Sequence[Buffer],
        attributes: Mapping[str, Attribute],
    ) -> Buffer:
        """Emit one instruction as a kernel; return its result."""
        parameters = tuple(
            Instruction(f"p{n}", operand.shape, "parameter", (), {"parameter_number": n})
            for n, operand in enumerate(operands)
        )
        names = tuple(p.name for p in parameters)
        root = Instruction("root", shape, opcode, names, dict(attributes))
        return self._launch(Computation(opcode, (*parameters, root), "root"), list(operands))

    def static(self, source: Buffer) -> Buffer:
        """Convert an array with bounded dimensions to a static one, padded with zeros."""
        if source.sizes is None:
            return source
        dims = source.shape.dims
        whole = {"slice": tuple((0, dim, 1) for dim in dims)}
        return self._instruction(
            "slice", ArrayShape(source.shape.element_type, dims), [source], whole
        )

    def _launch(self, computation: Computation, operands: list[Buffer]) -> Buffer:
        """Launch a computation with one array as its result."""
        result = self._block.launch(computation, list(operands))
        assert isinstance(result, Buffer)
        return result

    def slice_of(self, source: Buffer) -> Buffer:
        """Emit the slice of an input at this iteration."""
        dims, d = source.shape.dims, self._dimension
        part = ArrayShape(source.shape.element_type, (*dims[:d], 1, *dims[d + 1 :]))
        whole = ArrayShape(part.element_type, (*dims[:d], *dims[d + 1 :]))
        zero = Literal(self._count, np.zeros((), self._count.element_type.numpy))
        starts = ["zero"] * len(dims)
        starts[d] = "position"
        instructions = (
            Instruction("source", source.shape, "parameter", (), {"parameter_number": 0}),
            Instruction("position", self._count, "parameter", (), {"parameter_number": 1}),
            Instruction("zero", self._count, "constant", (), {"literal": zero}),
            Instruction(
                "part",
                part,
                "dynamic-slice",
                ("source", *starts),
                {"dynamic_slice_sizes": part.dims},
            ),
            Instruction("root", whole, "reshape", ("part",)),
        )
        return self._launch(Computation("slice", instructions, "root"), [source, self._position])

    def allocate_stacked(self, shape: ArrayShape) -> Buffer:
        """Allocate an output of all iterations, zeroed."""
        d = self._dimension
        dims = (*shape.dims[:d], self._length, *shape.dims[d:])
        result = ArrayShape(shape.element_type, dims)
        scalar = ArrayShape(shape.element_type)
        zero = Literal(scalar, np.zeros((), shape.element_type.numpy))
        instructions = (
            Instruction("zero", scalar, "constant", (), {"literal": zero}),
            Instruction("root", result, "broadcast", ("zero",), {"dimensions": ()}),
        )
        return self._launch(Computation("zeros", instructions, "root"), [])

    def with_actual_length(self, stacked: Buffer) -> Buffer:
        """Set a stacked output's actual size to the number of slices, if inputs are bounded."""
        if not self._varies:
            return stacked
        shape, d = stacked.shape, self._dimension
        shortened = bounded(
            shape.element_type, shape.dims, tuple(n == d for n in range(shape.rank))
        )
        size = self._actual
        if self._count.element_type is not S32:
            size = self._instruction("convert", ArrayShape(S32), [size], {})
        return self._instruction(
            "set-dimension-size", shortened, [stacked, size], {"dimensions": (d,)}
        )

    def store(self, value: Buffer, target: Buffer) -> None:
        """Emit the store of this iteration's output into the stacked one, in place."""
        if not value.shape.elements:
            return
        d, dims = self._dimension, value.shape.dims
        # Written as loop IR: as an instruction, dynamic-update-slice would copy the whole stack
        # each time.
        scope = Scope(self._block.settings)
        source = Array("a0", value.shape.element_type, value.shape.elements)
        position = Array("a1", self._count.element_type, 1)
        into = Array("r0", value.shape.element_type, target.shape.elements, mutable=True)
        place = apply("convert", scope.load(position, ix.constant(0)), type=INDEX)
        # It is within that already: the clamp tells index arithmetic so.
        slice_index = scope.bind(ix.clamp(0, place, self._length - 1))
        with nest.split(scope, dims) as index:
            there = ix.linearize((*index[:d], slice_index, *index[d:]), target.shape.dims)
            scope.store(into, there, scope.load(source, ix.linearize(index, dims)))
        numerics = self._block.settings.numerics
        kernel = Kernel((source, position), (into,), (), scope.statements, numerics, kind="update")
        self._block.plan.kernels.append(kernel)
        number = len(self._block.plan.kernels) - 1
        self._block.emit(Launch(number, (value, self._position), (target,), (), self._block.origin))
