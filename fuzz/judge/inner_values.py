"""Judge a compiler's values of the entry's instructions, next to its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import hlo
import interp
from fuzz.judge.failure import is_step
from fuzz.peers.xla import Answer
from fuzz.reducer.cutting import affordable
from hlo.module import Module
from hlo.values import Array, Value, arrays_of
from interp.envelope.budget import Budget
from interp.envelope.judgement import Judge
from interp.envelope.recorded_values import exposed
from interp.envelope.trying import Output

_MOST_BYTES = 1 << 28  # of the values: exact ones and two bounds of each take as much again


def inner_outputs(
    run: Callable[[str, Sequence[Array]], Answer],
    budget: Budget,
    module: Module,
    values: tuple[Value, ...],
    *,
    seed: int = 0,
) -> tuple[Output, ...]:
    """Judge the values of the entry's instructions, each an output whose place is its name.

    The compiler runs a program that also returns these values: it may fuse differently there, but
    values outside the envelope are as wrong. The smallest arrays are requested, 256 MB in all, none
    from inside loops and calls. Empty if the compiler does not accept that program.
    """
    entry = module.entry
    steps = (i for i in entry.instructions if is_step(i) and i.name != entry.root)
    names = affordable(steps, _MOST_BYTES)
    if not names:
        return ()
    whole = exposed(module, names)
    arrays = list(arrays_of(values))
    answer = run(hlo.format(whole), arrays)
    if answer.outputs is None:
        return ()
    exact = list(arrays_of(interp.evaluate(whole, *values, seed=seed)))
    places = [*[""] * (len(exact) - len(names)), *names]
    judge = Judge(whole, values, [*zip(places, exact, strict=True)], peer=budget, seed=seed)
    found = judge.judged(answer.outputs, lambda other: None)
    return tuple(output for output in found.outputs if output.place)
