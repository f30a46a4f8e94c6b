"""Find what enclosing a module asks of its text, whatever its values are."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from hlo.module import Computation, Instruction, Module
from hlo.walk import Schedule, live, scheduled
from interp.envelope import bounded_enclosures, constant_sums, elementwise_chains
from interp.envelope.exact_loops import exact_computations, exact_instructions, exact_loops
from interp.envelope.float_sums.merged_sums import merged
from interp.envelope.rewritten_products import masks
from interp.evaluator import Evaluation


class ModuleFacts:
    """The inner and stored values of chains, constants and sums of them, masks, merged sums, and
    what is exact, by computation; and the exact evaluation, with what it has prepared."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.inner = elementwise_chains.inner_values(module)
        self.constants = constant_sums.constant_values(module)
        self.constant_sums = constant_sums.sums_of_constants(module, self.constants)
        self.masks = masks(module)
        self.merged = merged(module)
        self.exact_loops = exact_loops(module)
        self.whole = {c.name: exact_instructions(c) for c in module.computations}
        self.exact_computations = exact_computations(module)
        self.stored = elementwise_chains.stored_values(module.entry)
        self.exact = Evaluation(module, None)
        # Of instructions, by computation, as a memo gives them.
        self.numbers: dict[str, dict[str, int]] = {c.name: {} for c in module.computations}
        self._schedules: dict[str, Schedule] = {}
        self._declared: dict[str, Mapping[str, bounded_enclosures.Declared]] = {}

    def schedule(self, computation: Computation) -> Schedule:
        """Return the live instructions of a computation, prepared to be followed."""
        found = self._schedules.get(computation.name)
        if found is None:
            names = live(computation, lambda instruction: False)
            order = [i for i in computation.instructions if i.name in names]
            found = self._schedules[computation.name] = scheduled(computation, order)
        return found

    def declared(self, computation: Computation) -> Mapping[str, bounded_enclosures.Declared]:
        """Return what each instruction of a computation declares, by name."""
        found = self._declared.get(computation.name)
        if found is None:
            found = bounded_enclosures.declared(self.module, computation)
            self._declared[computation.name] = found
        return found

    def of(self, computation: str, instruction: Instruction) -> Hashable:
        """Return what is known of an instruction: whether it is an inner value, and which operands
        are masks."""
        masks = self.masks[computation]
        is_inner = instruction.name in self.inner[computation]
        return is_inner, tuple(name in masks for name in instruction.operands)

    def of_computation(self, name: str) -> Hashable:
        """Return what is known of all instructions of a computation that another one calls."""
        sums = tuple(sorted(self.constant_sums[name].items()))
        return self.inner[name], self.masks[name], self.merged[name], sums
