"""Judge results of PyTorch on the values that its operations have one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import hlo
import interp
from hlo.errors import Error
from hlo.module import Module
from hlo.values import Array, arrays_of
from hlo_oracle.peer_verdicts import Examination, evidence
from interp.envelope.budget import Budget
from interp.envelope.judgement import Judge, inlined
from interp.envelope.open_results import restricted
from interp.envelope.trying import Found, Shown
from interp.envelope.verdict import OUTSIDE, UNDETERMINED
from interp.values import conforms

if TYPE_CHECKING:
    from hlo_oracle.frontends.torch.functions import TracedFunction
    from hlo_oracle.frontends.torch.values_between import ValuesBetween


_MOST_RUNS = 3  # without the steps that were outside in the runs before
_MOST_LINES = 5


def on_values_between(
    examined: Examination, traced: TracedFunction, budget: Budget, seed: int
) -> Examination:
    """Judge undetermined elements of an examination on the values of a run of the function's
    operations, one by one: results that follow from legal steps are legal.

    Steps of that run that seem wrong are told, and what follows is judged without them. They prove
    nothing: what an operation returns beside its result, and the function does not use, has a
    conversion that no result was ever compared by.
    """
    first = examined.found
    if first is None or first.mismatch is not None or not first.counts.get(UNDETERMINED):
        return examined
    try:
        between = traced.between()
    except Error:  # of a run that PyTorch does not do: nothing is known of values in between
        between = None
    if between is None:
        return examined
    found, suspects = _judged(first, between, budget, seed)
    return replace(examined, found=found or first, suspects=tuple(suspects[:_MOST_LINES]))


def _judged(
    first: Found, between: ValuesBetween, budget: Budget, seed: int
) -> tuple[Found | None, list[str]]:
    """Judge results on values in between; return None if nothing follows from these, and a line for
    each step that is outside."""
    whole = hlo.parse(between.text)
    actual = [one.actual for one in first.outputs]
    exact = [(one.place, one.exact) for one in first.outputs]
    module = restricted(whole, range(len(actual)))
    known = named(whole, module, between.values)
    suspects: list[str] = []
    for _ in range(_MOST_RUNS):
        shown = Shown(between.results, known)
        judge = Judge(module, between.arguments, exact, peer=budget, seed=seed, shown=shown)
        found = judge.judged(actual, lambda module: None)
        if not found.wrong:
            break
        suspects += [f"suspect, but not proven: {line}" for line in evidence(found)]
        wrong = {step.instruction.name for step in found.wrong}
        known = {name: value for name, value in known.items() if name not in wrong}
    if found.wrong or found.counts.get(OUTSIDE):
        return None, suspects
    if not _same_bits(between.results, actual):
        # Nothing shows yet that the program with more results is the one that was judged.
        again = [*arrays_of(interp.evaluate(module, *between.arguments, seed=seed))]
        if not _same_bits(again, [one.exact for one in first.outputs]):
            return None, suspects
    return found, suspects


def _same_bits(some: Sequence[Array], others: Sequence[Array]) -> bool:
    pairs = zip(some, others, strict=True)
    return all(x.tobytes() == y.tobytes() for x, y in pairs)


def named(whole: Module, module: Module, values: Sequence[Array | None]) -> Mapping[str, Array]:
    """Name values by the instructions that give them in the inlined ``module``, whose result is the
    beginning of that of ``whole``; they are the rest of it, as many in all."""
    of_whole = inlined(whole).entry
    names = of_whole.root_instruction.operands
    own = len(module.entry.root_instruction.operands)
    if len(names) != own + len(values):
        return {}
    of_module = {i.name: i for i in inlined(module).entry.instructions}
    by_name = {i.name: i for i in of_whole.instructions}
    return {
        name: value
        for name, value in zip(names[own:], values, strict=True)
        if value is not None
        and of_module.get(name) == by_name[name]
        and conforms(value, by_name[name].shape)
    }
