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
from hlo_oracle.peer_verdicts import Examination
from interp.envelope.budget import Budget
from interp.envelope.judgement import Judge, inlined
from interp.envelope.open_results import restricted
from interp.envelope.trying import Found, Shown
from interp.envelope.verdict import OUTSIDE, UNDETERMINED

if TYPE_CHECKING:
    from hlo_oracle.frontends.torch.functions import TracedFunction


def on_values_between(
    examined: Examination, traced: TracedFunction, budget: Budget, seed: int
) -> Examination:
    """Judge undetermined elements of an examination on the values of a run of the function's
    operations, one by one. Unless that run gave the function's bits, what is wrong in it proves
    nothing of the function, but results that follow from its values are legal."""
    first = examined.found
    if first is None or first.mismatch is not None or not first.counts.get(UNDETERMINED):
        return examined
    try:
        found = _judged(first, traced, budget, seed)
    except Error:  # of a run that PyTorch does not do: nothing is known of values in between
        return examined
    return examined if found is None else replace(examined, found=found)


def _judged(first: Found, traced: TracedFunction, budget: Budget, seed: int) -> Found | None:
    between = traced.between()
    if between is None:
        return None
    whole = hlo.parse(between.text)
    actual = [one.actual for one in first.outputs]
    module = restricted(whole, range(len(actual)))
    shown = Shown(between.results, named(whole, module, between.values))
    exact = [(one.place, one.exact) for one in first.outputs]
    judge = Judge(module, between.arguments, exact, peer=budget, seed=seed, shown=shown)
    found = judge.judged(actual, lambda module: None)
    if _same_bits(between.results, actual):
        return found
    if found.wrong or found.counts.get(OUTSIDE):
        return None
    # Nothing shows yet that the program with more results is the one that was judged.
    again = arrays_of(interp.evaluate(module, *between.arguments, seed=seed))
    return found if _same_bits(again, [one.exact for one in first.outputs]) else None


def _same_bits(some: Sequence[Array], others: Sequence[Array]) -> bool:
    pairs = zip(some, others, strict=True)
    return all(x.tobytes() == y.tobytes() for x, y in pairs)


def named(whole: Module, module: Module, values: Sequence[Array]) -> Mapping[str, Array]:
    """Name values by the instructions that give them in the inlined ``module``, whose result is the
    beginning of that of ``whole``; they are the rest of it."""
    of_whole = inlined(whole).entry
    names = of_whole.root_instruction.operands[-len(values) :] if values else ()
    of_module = {i.name: i for i in inlined(module).entry.instructions}
    by_name = {i.name: i for i in of_whole.instructions}
    return {
        name: value
        for name, value in zip(names, values, strict=True)
        if of_module.get(name) == by_name[name]
    }
