"""Lower HLO to a plan: computing instructions become kernels, the others control flow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

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
    """Lower a module that went through the passes of the C backend.

    ``grain`` is the grain size: loops of at least so many element operations run on several
    threads. Raises Unsupported for what the backend does not take.
    """
    lowering = Lowering(module, columns(), grain)
    values = [lowering.new_buffers(p.shape) for p in module.entry.parameters]
    arguments = [buffer for value in values for buffer in lowering.buffers_of(value)]
    result = lowering.evaluate(module.entry, values)
    not_writable = {*arguments, *(buffer for buffer, _ in lowering.plan.constants)}
    results: list[Buffer] = []
    for buffer in lowering.buffers_of(result):
        # The caller owns the memory of results: one that is an argument, a constant or a result
        # already needs a copy.
        if buffer in not_writable or buffer in results:
            buffer = lowering.copied(buffer)
        results.append(buffer)
    steps = tuple(lowering.steps)
    return replace(lowering.plan, arguments=arguments, results=results, steps=steps)


class Lowering:
    """Hold the plan under construction, and the list of steps being written."""

    def __init__(self, module: Module, kernel_columns: Columns, grain: int) -> None:
        self.plan, self.grain = Plan(), grain
        self.steps: list[Step] = []
        self._module, self._columns = module, kernel_columns
        self._has_effect = effects(module)
        self._control = column("backend_c.lower")

    def evaluate(self, computation: Computation, arguments: Sequence[Value]) -> Value:
        """Emit the steps of a computation on buffers; return the buffers of its result."""
        needed = live(computation, self._has_effect)
        order = [i for i in computation.instructions if i.name in needed]
        shapes = {i.name: i.shape for i in computation.instructions}

        def run(instruction: Instruction, operands: list[Value]) -> Value:
            if instruction.opcode == "constant":
                return self._constant(instruction)
            if instruction.opcode == "fusion":
                fused = self._module.computation(str(instruction.attributes["calls"]))
                return self.launch(fused, operands)
            # Looked for first: plumbing has functions there, too, and needs no kernel outside of
            # kernels.
            op = self._control.get(function_name(instruction.opcode))
            if op is None:
                operand_shapes = [shapes[name] for name in instruction.operands]
                return self.launch(_single_instruction(instruction, operand_shapes), operands)
            attributes = keywords(self._module, instruction, self._enter)
            if "block" in op.given:
                attributes["block"] = self
            return call(op, instruction, operands, attributes)

        return walk(computation, arguments, run, order)

    def _enter(self, computation: Computation) -> Callable[..., Value]:
        """Return a computation as control flow calls it."""
        return lambda *arguments: self.evaluate(computation, arguments)

    def _constant(self, instruction: Instruction) -> Value:
        """Allocate a constant; Unsupported if the text elides its value."""
        literal = instruction.attributes["literal"]
        assert isinstance(literal, Literal)
        if literal.is_elided:
            raise Unsupported(
                f"%{instruction.name}: the text elides the value as {{...}}; dump the module with"
                " --xla_dump_large_constants, or print it with print_large_constants=True"
            )
        return self._literal(literal)

    def _literal(self, literal: Literal) -> Value:
        """Allocate the arrays of a literal."""
        if isinstance(literal.value, tuple):
            return tuple(map(self._literal, literal.value))
        assert isinstance(literal.shape, ArrayShape)
        return self.constant(np.asarray(literal.value))

    def constant(self, values: np.ndarray) -> Buffer:
        """Add a buffer that the program brings along."""
        element_type = element_type_of(values.dtype)
        assert element_type is not None, values.dtype
        buffer = self.plan.buffer(ArrayShape(element_type, values.shape))
        self.plan.constants.append((buffer, values))
        return buffer

    def launch(self, computation: Computation, operands: list[Value]) -> Value:
        """Emit the launch of one kernel: elemental instructions around at most one hero."""
        shape = computation.root_instruction.shape
        result = self.new_buffers(shape)
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

    # Building blocks of control flow

    def emit(self, step: Step) -> None:
        """Append a step."""
        self.steps.append(step)

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

    def zeros(self, shape: Shape) -> Value:
        """Return a constant of zeros of a shape."""
        if not isinstance(shape, ArrayShape):
            return tuple(map(self.zeros, shape.elements))
        if not shape.element_type.is_array:
            return ()
        return self.constant(np.zeros(shape.dims, shape.element_type.numpy))

    def allocate_like(self, value: Value) -> Value:
        """Allocate buffers of the shapes of another value."""
        if isinstance(value, tuple):
            return tuple(map(self.allocate_like, value))
        return self.new_buffers(value.shape)

    def fresh_copy(self, value: Value) -> Value:
        """Copy a value to new buffers."""
        if isinstance(value, tuple):
            return tuple(map(self.fresh_copy, value))
        return self.copied(value)

    def copied(self, source: Buffer) -> Buffer:
        """Copy a buffer to a new one."""
        target = self.new_buffers(source.shape)
        assert isinstance(target, Buffer)
        self.copy(source, target)
        return target

    def copy(self, source: Buffer, target: Buffer) -> None:
        """Copy a buffer to another, with its actual sizes."""
        self.steps.append(Copy(source, target))
        if source.sizes is not None and target.sizes is not None:
            self.steps.append(Copy(source.sizes, target.sizes))

    def buffers_of(self, value: Value) -> list[Buffer]:
        """Return the arrays of a value in order, without the buffers of their sizes."""
        if isinstance(value, Buffer):
            return [value]
        return [buffer for element in value for buffer in self.buffers_of(element)]


def _single_instruction(instruction: Instruction, shapes: Sequence[Shape]) -> Computation:
    """Wrap one instruction in a computation; every operand becomes a parameter of its own."""
    parameters = tuple(
        Instruction(f"p{number}", shape, "parameter", (), {"parameter_number": number})
        for number, shape in enumerate(shapes)
    )
    renamed = instruction._replace(operands=tuple(p.name for p in parameters), name="root")
    return Computation("alone", (*parameters, renamed), "root")
