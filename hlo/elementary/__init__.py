"""Elementary functions: each one fixed sequence of float64 operations over an abstract machine.

``evaluate("exponential", machine, x)`` runs the *narrow* sequence: ``x`` holds values of f32 or a
narrower type, widened exactly, and rounding the float64 result once to that type gives the
correctly rounded value (proved for every input: ``docs/proofs.md``). ``evaluate("exponential_f64",
machine, x)`` runs the sequence for f64 operands, whose result is final. Functions that are absent
from ``FUNCTIONS`` have no sequence: ``evaluate`` raises ``Unsupported``.

A machine is described in ``hlo/elementary/machine.py``; the same bits come out of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hlo.elementary import exponential as _exponential
from hlo.elementary.machine import Machine, V, with_sign_of
from hlo.elementary.misrounded import MISROUNDED
from hlo.errors import Unsupported

__all__ = ["FUNCTIONS", "Function", "Machine", "evaluate"]

Sequence = Callable[..., Any]  # (*operands: V, machine: Machine[V]) -> V, for every V


@dataclass(frozen=True, slots=True)
class Function:
    """A sequence of ``arity`` operands. ``parity`` "odd" or "even": the sequence is for x >= +0."""

    sequence: Sequence
    arity: int = 1
    parity: str = ""


FUNCTIONS: Mapping[str, Function] = {
    "exponential": Function(_exponential.exponential),
    "exponential_minus_one": Function(_exponential.exponential_minus_one),
    "logistic": Function(_exponential.logistic),
    "tanh": Function(_exponential.tanh, parity="odd"),
    "sinh": Function(_exponential.sinh, parity="odd"),
    "cosh": Function(_exponential.cosh, parity="even"),
}


def evaluate(name: str, machine: Machine[V], *operands: V) -> V:
    """The function ``name`` of ``FUNCTIONS`` at ``operands``."""
    function = FUNCTIONS.get(name)
    if function is None:
        raise Unsupported(f"{name} has no sequence; there are: {', '.join(FUNCTIONS)}")
    assert len(operands) == function.arity, name
    first, *others = operands
    x = machine.absolute(first) if function.parity else first
    result: V = function.sequence(x, *others, machine)
    for operand, correct in MISROUNDED.get(name, ()):
        result = machine.select(machine.equal(x, operand), correct, result)
    return with_sign_of(result, first, machine) if function.parity == "odd" else result
