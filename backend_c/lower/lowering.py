"""HLO to a plan: fusions, and instructions left alone, become kernels; the rest control flow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from backend_c.lower.kernel_builder import Columns, KernelBuilder, columns
from backend_c.lower.plan import Buffer, Copy, Launch, Plan, Step, Value
from hlo.errors import Unsupported
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.passes.effects import effects
from hlo.types import S32, ArrayShape, Shape, element_type_of
from hlo.walk import call, column, function_name, keywords, live, walk


def lower(module: Module, grain: int) -> Plan:
    """The plan of a module that went through the passes of the C backend. Loops of ``grain``
    element operations or more are run by several threads."""
    lowering = Lowering(module, columns(), grain)
    plan = lowering.plan
    arguments = [lowering.receive(p.shape) for p in module.entry.parameters]
    plan.arguments = [b for a in arguments for b in lowering.buffers_of(a)]
    result = lowering.evaluate(module.entry, arguments)
    given = {*plan.arguments, *(buffer for buffer, _ in plan.constants)}
    for buffer in lowering.buffers_of(result):
        if buffer in given or buffer in plan.results:
            buffer = lowering.copied(buffer)
        plan.results.append(buffer)
    plan.steps = tuple(lowering.steps)
    return plan


class Lowering:
    """The plan so far, and the list of steps being written."""

    def __init__(self, module: Module, known: Columns, grain: int) -> None:
        self.plan, self.grain = Plan(), grain
        self.steps: list[Step] = []
        self._module, self._columns = module, known
        self._has_effect = effects(module)
        self._control = column("backend_c.lower")

    def evaluate(self, computation: Computation, arguments: Sequence[Value]) -> Value:
        """Emit the steps of a computation."""
        needed = live(computation, self._has_effect)
        order = [i for i in computation.instructions if i.name in needed]
        shapes = {i.name: i.shape for i in computation.instructions}

        def run(instruction: Instruction, operands: list[Value]) -> Value:
            if instruction.opcode == "constant":
                return self._constant(instruction)
            if instruction.opcode == "fusion":
                fused = self._module.computation(str(instruction.attributes["calls"]))
                return self.launch(fused, operands)
            op = self._control.get(function_name(instruction.opcode))
            if op is None:
                given = [shapes[name] for name in instruction.operands]
                return self.launch(_alone(instruction, given), operands)
            attributes = keywords(self._module, instruction, self._enter)
            if "block" in op.given:
                attributes["block"] = self
            return call(op, instruction, operands, attributes)

        return walk(computation, arguments, run, order)

    def _enter(self, computation: Computation) -> Callable[..., Value]:
        return lambda *arguments: self.evaluate(computation, arguments)

    def _constant(self, instruction: Instruction) -> Value:
        literal = instruction.attributes["literal"]
        assert isinstance(literal, Literal)
        if literal.is_elided:
            raise Unsupported(
                f"%{instruction.name}: the text elides the value as {{...}}; dump the module with"
                " --xla_dump_large_constants, or print it with print_large_constants=True"
            )
        return self._literal(literal)

    def _literal(self, literal: Literal) -> Value:
        if isinstance(literal.value, tuple):
            return tuple(map(self._literal, literal.value))
        assert isinstance(literal.shape, ArrayShape)
        return self.constant(np.asarray(literal.value))

    def constant(self, values: np.ndarray) -> Buffer:
        """A buffer that the program brings along."""
        element_type = element_type_of(values.dtype)
        assert element_type is not None, values.dtype
        made = self.plan.buffer(ArrayShape(element_type, values.shape))
        self.plan.constants.append((made, values))
        return made

    def launch(self, computation: Computation, operands: list[Value]) -> Value:
        """One kernel for a computation of elemental instructions around at most one hero."""
        shape = computation.root_instruction.shape
        result = self.receive(shape)
        outputs = self.buffers_of(result)
        builder = KernelBuilder(self._module, self._columns, computation, self.grain)
        kernel, inputs = builder.build(operands, outputs)
        if not kernel.body:
            return result  # nothing but empty arrays
        self.plan.kernels.append(kernel)
        written = [b for o in outputs for b in ((o, o.sizes) if o.sizes else (o,))]
        scratch = [
            self.plan.buffer(ArrayShape(array.element_type, (array.elements,)))
            for array in kernel.scratch
        ]
        inputs = (*inputs, *map(self.constant, kernel.tables))
        number = len(self.plan.kernels) - 1
        self.steps.append(Launch(number, inputs, tuple(written), tuple(scratch)))
        return result

    # What control flow builds with

    def emit(self, step: Step) -> None:
        self.steps.append(step)

    @contextmanager
    def steps_apart(self) -> Iterator[list[Step]]:
        """Steps emitted inside go to the list instead."""
        outside, self.steps = self.steps, []
        yield self.steps
        self.steps = outside

    def receive(self, shape: Shape) -> Value:
        """New buffers for a value of a shape."""
        if not isinstance(shape, ArrayShape):
            return tuple(map(self.receive, shape.elements))
        if not shape.element_type.is_array:
            return ()  # tokens carry nothing
        sizes = self.plan.buffer(ArrayShape(S32, (shape.rank,))) if shape.is_dynamic else None
        return self.plan.buffer(ArrayShape(shape.element_type, shape.dims, shape.dynamic), sizes)

    def zeros(self, shape: Shape) -> Value:
        """A constant of zeros."""
        if not isinstance(shape, ArrayShape):
            return tuple(map(self.zeros, shape.elements))
        if not shape.element_type.is_array:
            return ()
        return self.constant(np.zeros(shape.dims, shape.element_type.numpy))

    def allocate_like(self, value: Value) -> Value:
        if isinstance(value, tuple):
            return tuple(map(self.allocate_like, value))
        return self.receive(value.shape)

    def fresh_copy(self, value: Value) -> Value:
        if isinstance(value, tuple):
            return tuple(map(self.fresh_copy, value))
        return self.copied(value)

    def copied(self, source: Buffer) -> Buffer:
        target = self.receive(source.shape)
        assert isinstance(target, Buffer)
        self.copy(source, target)
        return target

    def copy(self, source: Buffer, target: Buffer) -> None:
        self.steps.append(Copy(source, target))
        if source.sizes is not None and target.sizes is not None:
            self.steps.append(Copy(source.sizes, target.sizes))

    def buffers_of(self, value: Value) -> list[Buffer]:
        """The arrays of a value in order, without the buffers of their sizes."""
        if isinstance(value, Buffer):
            return [value]
        return [buffer for element in value for buffer in self.buffers_of(element)]


def _alone(instruction: Instruction, shapes: Sequence[Shape]) -> Computation:
    """A computation of one instruction; operands named twice are one parameter each."""
    parameters = tuple(
        Instruction(f"p{number}", shape, "parameter", (), {"parameter_number": number})
        for number, shape in enumerate(shapes)
    )
    renamed = instruction._replace(operands=tuple(p.name for p in parameters), name="root")
    return Computation("alone", (*parameters, renamed), "root")
