"""Lower HLO to a plan: computing instructions become kernels, the others control flow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from backend_c.ir.deep_expressions import deep_expressions
from backend_c.ir.loop_ir import Kernel
from backend_c.ir.settings import Settings
from backend_c.lower.block import Block
from backend_c.lower.buffers import peak
from backend_c.lower.columns import Columns, columns
from backend_c.lower.computation_views import ComputationViews, Views
from backend_c.lower.exchanges import with_exchanges
from backend_c.lower.loop_interchange import with_interchanged_loops
from backend_c.lower.memory_order import with_least_memory
from backend_c.lower.merging import with_merged_loops
from backend_c.lower.ownership import Ownership
from backend_c.lower.placements import Placements
from backend_c.lower.plan import Buffer, Origin, Plan, Value
from backend_c.lower.results_in_place import with_coalesced_copies, with_results_in_place
from backend_c.lower.views import with_views
from hlo.errors import Unsupported
from hlo.literal import Literal
from hlo.module import Computation, Instruction, Module
from hlo.opcodes import GIVEN, having
from hlo.passes.effects import effects
from hlo.passes.updates_in_place import updated_operand
from hlo.text.source_locations import located
from hlo.types import ArrayShape, Shape
from hlo.walk import call, column, function_name, keywords, live, walk

_GIVEN = having(GIVEN)
_RESULT = "results are the caller's, and this is an argument, a constant or a result already"


def ignored(kernel: Kernel) -> None:
    """Do nothing with a kernel."""


@deep_expressions()
def lower(
    module: Module, settings: Settings, launched: Callable[[Kernel], object] = ignored
) -> Plan:
    """Lower a module that went through the passes of the C backend.

    ``launched`` is called with the kernel of each launch as soon as that is lowered, but in scalar
    settings, which lower several times: the kernel is not yet sure to be in the plan, as loops are
    merged and interchanged when all are there. Raises Unsupported for what the backend does not
    take.
    """
    least = settings.least_exchanged
    if not settings.is_scalar:
        views = Views(of_parts=False, are_slices=False) if settings.has_lanes else None
        return with_exchanges(_lowered(module, settings, views, launched), least)
    # What a view lies in lives as long as the first and the last of them: copies may take less.
    plans: list[Plan] = []
    for views in (Views(), Views(of_workspace=False), Views(of_parts=False, of_workspace=False)):
        plan = _lowered(module, settings, views)
        # Kernels that write in place are less often those of other layers, too.
        plan = with_least_memory(plan, with_coalesced_copies, with_results_in_place)
        plans.append(with_exchanges(plan, least))
        # Where the first choice makes no view, those that allow fewer give the same plan.
        if not with_views(plan):
            break
    return min(plans, key=lambda one: peak(one).bytes)


def _lowered(
    module: Module,
    settings: Settings,
    views: Views | None,
    launched: Callable[[Kernel], object] = ignored,
) -> Plan:
    """Lower a module; ``views`` says which arrays lie within others, None that none does."""
    lowering = Lowering(module, columns(), settings, launched, views)
    values = [lowering.new_buffers(p.shape) for p in module.entry.parameters]
    arguments = [buffer for value in values for buffer in lowering.buffers_of(value)]
    lowering.outside.update(arguments)
    result = lowering.evaluate(module.entry, values)
    lowering.origin = Origin(module.entry_name, module.entry.root)
    not_writable = {*arguments, *(buffer for buffer, _ in lowering.plan.constants)}
    results: list[Buffer] = []
    for buffer in lowering.buffers_of(result):
        # The caller owns the memory of results: one that is an argument, a constant or a result
        # already needs a copy.
        if buffer in not_writable or buffer in results or buffer.view is not None:
            buffer = lowering.copied(buffer, _RESULT)
        results.append(buffer)
    steps = tuple(lowering.steps)
    plan = replace(lowering.plan, arguments=arguments, results=results, steps=steps)
    return with_interchanged_loops(with_merged_loops(plan), settings)


class Lowering(Block):
    """Lower computations of one module to the steps of a block."""

    def __init__(
        self,
        module: Module,
        kernel_columns: Columns,
        settings: Settings,
        launched: Callable[[Kernel], object],
        views: Views | None = None,
    ) -> None:
        super().__init__(module, kernel_columns, settings, launched)
        self._views = views
        self._has_effect = effects(module)
        self._control = column("backend_c.lower")

    def evaluate(self, computation: Computation, arguments: Sequence[Value]) -> Value:
        """Emit the steps of a computation on buffers; return the buffers of its result."""
        needed = live(computation, self._has_effect)
        order = [i for i in computation.instructions if i.name in needed]
        ownership = Ownership(self.plan, computation, arguments, order, self._owned)
        self._owned = frozenset()
        shapes = {i.name: i.shape for i in computation.instructions}

        kernels = {i.name: self._kernel(i, shapes) for i in order}
        views = ComputationViews(self, self._views, Placements(computation, order, kernels))

        def run(instruction: Instruction, operands: list[Value]) -> Value:
            self.reusable = cache(partial(ownership.reusable, instruction, operands))
            outer, self.origin = self.origin, Origin(computation.name, instruction.name)
            try:
                result = evaluated(instruction, operands)
            except Unsupported as error:
                raise located(error, self._module, instruction) from error
            self.origin = outer
            ownership.note(instruction, result)
            return result

        def evaluated(instruction: Instruction, operands: list[Value]) -> Value:
            if instruction.opcode == "constant":
                return self._constant(instruction)
            kernel = kernels[instruction.name]
            if kernel is not None:
                viewed = views.value(instruction.name, operands)
                if viewed is not None:
                    return viewed
                patched = self._patched(instruction, kernel, operands)
                return self.launch(kernel, operands, patched, views.place(instruction.name))
            op = self._control[function_name(instruction.opcode)]
            operand_shapes = [shapes[name] for name in instruction.operands]
            attributes = keywords(self._module, instruction, self._enter)
            if "block" in op.given:
                attributes["block"] = self
            return call(op, instruction, operands, attributes, operand_shapes)

        return walk(computation, arguments, run, order)

    def _kernel(self, instruction: Instruction, shapes: Mapping[str, Shape]) -> Computation | None:
        """Return the computation of the kernel that an instruction becomes.

        None if it is control flow, plumbing of values, a parameter or a constant.
        """
        if instruction.opcode == "fusion":
            return self._module.computation(str(instruction.attributes["calls"]))
        # Plumbing has functions there, too, and needs no kernel outside of kernels.
        if instruction.opcode in _GIVEN or function_name(instruction.opcode) in self._control:
            return None
        return _single_instruction(instruction, [shapes[name] for name in instruction.operands])

    def _patched(
        self, fusion: Instruction, fused: Computation, operands: list[Value]
    ) -> Buffer | None:
        """Return the buffer that an in-place update writes: its operand's or a copy; else None."""
        number = updated_operand(fusion, fused)
        if number is None:
            return None
        buffer = self.taken(operands[number])
        assert isinstance(buffer, Buffer)
        return buffer

    def _enter(self, computation: Computation) -> Callable[..., Value]:
        """Return a callee as a function of argument buffers that emits its steps."""
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


def _single_instruction(instruction: Instruction, shapes: Sequence[Shape]) -> Computation:
    """Wrap one instruction in a computation; every operand becomes a parameter of its own."""
    parameters = tuple(
        Instruction(f"p{number}", shape, "parameter", (), {"parameter_number": number})
        for number, shape in enumerate(shapes)
    )
    renamed = instruction._replace(operands=tuple(p.name for p in parameters), name="root")
    return Computation("alone", (*parameters, renamed), "root")
