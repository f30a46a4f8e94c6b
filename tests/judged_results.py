"""Judge the results of a compiler whose budget is a row of BUDGETS."""

from collections.abc import Sequence
from typing import Any

from hlo.module import Module
from hlo.values import Array, arrays_of
from interp.envelope import budget
from interp.envelope.judgement import Judge
from interp.envelope.trying import Found
from interp.evaluator import evaluate


def judged_by(
    name: str, module: Module, values: Sequence[Any], actual: Sequence[Array], seed: int = 0
) -> Found:
    """Judge ``actual``, the arrays of the result of ``module`` on ``values``, in order. ``fast`` is
    the row of ``backend_c``. Raises ArgumentError for an unknown name."""
    peer = budget.named(name)
    exact = arrays_of(evaluate(module, *values, seed=seed))
    named = [(f"result {place}", array) for place, array in enumerate(exact)]
    judge = Judge(module, values, named, peer=peer, seed=seed)
    return judge.judged(actual, lambda other: None)
