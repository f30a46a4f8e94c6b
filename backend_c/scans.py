"""scan as a loop over its slices: what each turn reads, what it stores, and where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from backend_c import index as ix
from backend_c import nest
from backend_c.loop_ir import INDEX, Array, Kernel
from backend_c.plan import Buffer, Launch
from backend_c.scope import Scope, apply
from hlo.errors import Unsupported
from hlo.literal import Literal
from hlo.module import Computation, Instruction
from hlo.types import PRED, S32, ArrayShape

if TYPE_CHECKING:
    from backend_c.lowering import Lowering

_COUNT = ArrayShape(S32)


class Slices:
    """The position of a scan of ``length`` slices along ``dimension``, and what it does there."""

    def __init__(self, block: Lowering, dimension: int, length: int, is_reverse: bool) -> None:
        self._block, self._dimension, self._length = block, dimension, length
        self._is_reverse = is_reverse
        self._turn = block.copied(block.constant(np.zeros((), np.int32)))
        self._position = self._turn

    def is_left(self) -> Buffer:
        """Whether there is another slice."""
        return self._count("compare", ArrayShape(PRED), self._length, {"direction": "LT"})

    def start_turn(self) -> None:
        if self._is_reverse:
            self._position = self._count("subtract", _COUNT, self._length - 1, {}, turned=True)

    def end_turn(self) -> None:
        self._block.copy(self._count("add", _COUNT, 1, {}), self._turn)

    def _count(
        self,
        opcode: str,
        shape: ArrayShape,
        number: int,
        attributes: dict[str, str],
        *,
        turned: bool = False,
    ) -> Buffer:
        """The turn and a number combined, or the number and the turn."""
        literal = Literal(_COUNT, np.asarray(number, np.int32))
        operands = ("number", "turn") if turned else ("turn", "number")
        instructions = (
            Instruction("turn", _COUNT, "parameter", (), {"parameter_number": 0}),
            Instruction("number", _COUNT, "constant", (), {"literal": literal}),
            Instruction("root", shape, opcode, operands, dict(attributes)),
        )
        return self._launched(Computation("count", instructions, "root"), [self._turn])

    def _launched(self, computation: Computation, operands: list[Buffer]) -> Buffer:
        result = self._block.launch(computation, list(operands))
        assert isinstance(result, Buffer)
        return result

    def slice_of(self, source: Buffer) -> Buffer:
        """The slice of an input at this turn."""
        if source.sizes is not None:
            raise Unsupported("scan over bounded dimensions")
        dims, d = source.shape.dims, self._dimension
        part = ArrayShape(source.shape.element_type, (*dims[:d], 1, *dims[d + 1 :]))
        whole = ArrayShape(part.element_type, (*dims[:d], *dims[d + 1 :]))
        zero = Literal(_COUNT, np.zeros((), np.int32))
        starts = ["zero"] * len(dims)
        starts[d] = "position"
        instructions = (
            Instruction("source", source.shape, "parameter", (), {"parameter_number": 0}),
            Instruction("position", _COUNT, "parameter", (), {"parameter_number": 1}),
            Instruction("zero", _COUNT, "constant", (), {"literal": zero}),
            Instruction(
                "part",
                part,
                "dynamic-slice",
                ("source", *starts),
                {"dynamic_slice_sizes": part.dims},
            ),
            Instruction("root", whole, "reshape", ("part",)),
        )
        return self._launched(Computation("slice", instructions, "root"), [source, self._position])

    def stacked(self, shape: ArrayShape) -> Buffer:
        """Room for an output of every turn."""
        if shape.is_dynamic:
            raise Unsupported("scan with outputs of bounded dimensions")
        d = self._dimension
        dims = (*shape.dims[:d], self._length, *shape.dims[d:])
        result = ArrayShape(shape.element_type, dims)
        scalar = ArrayShape(shape.element_type)
        zero = Literal(scalar, np.zeros((), shape.element_type.numpy))
        instructions = (
            Instruction("zero", scalar, "constant", (), {"literal": zero}),
            Instruction("root", result, "broadcast", ("zero",), {"dimensions": ()}),
        )
        return self._launched(Computation("zeros", instructions, "root"), [])

    def store(self, value: Buffer, target: Buffer) -> None:
        """Put an output of this turn beside those of the others."""
        if not value.shape.elements:
            return
        d, dims = self._dimension, value.shape.dims
        scope = Scope()
        source = Array("a0", value.shape.element_type, value.shape.elements)
        position = Array("a1", S32, 1)
        into = Array("r0", value.shape.element_type, target.shape.elements, mutable=True)
        place = apply("convert", scope.load(position, ix.constant(0)), type=INDEX)
        turn = scope.bind(ix.clamp(0, place, self._length - 1))
        with nest.split(scope, dims) as index:
            there = ix.linearize((*index[:d], turn, *index[d:]), target.shape.dims)
            scope.store(into, there, scope.load(source, ix.linearize(index, dims)))
        self._block.plan.kernels.append(Kernel((source, position), (into,), (), scope.statements))
        number = len(self._block.plan.kernels) - 1
        self._block.emit(Launch(number, (value, self._position), (target,), ()))
