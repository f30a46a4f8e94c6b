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

from hlo.elementary import error_function as _erf
from hlo.elementary import exponential as _exponential
from hlo.elementary import inverse_trigonometric as _inverse
from hlo.elementary import logarithm as _logarithm
from hlo.elementary import roots as _roots
from hlo.elementary import trigonometric as _trigonometric
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


_ODD, _EVEN = "odd", "even"

FUNCTIONS: Mapping[str, Function] = {
    "acos": Function(_inverse.acos),
    "acosh": Function(_logarithm.acosh),
    "asin": Function(_inverse.asin, parity=_ODD),
    "asinh": Function(_logarithm.asinh, parity=_ODD),
    "atan": Function(_inverse.atan, parity=_ODD),
    "atanh": Function(_logarithm.atanh, parity=_ODD),
    "cbrt": Function(_roots.cbrt, parity=_ODD),
    "cosh": Function(_exponential.cosh, parity=_EVEN),
    "cosine": Function(_trigonometric.cosine, parity=_EVEN),
    "erf": Function(_erf.erf, parity=_ODD),
    "exponential": Function(_exponential.exponential),
    "exponential_minus_one": Function(_exponential.exponential_minus_one),
    "log": Function(_logarithm.log),
    "log_plus_one": Function(_logarithm.log_plus_one),
    "logistic": Function(_exponential.logistic),
    "rsqrt": Function(_roots.rsqrt),
    "sine": Function(_trigonometric.sine, parity=_ODD),
    "sinh": Function(_exponential.sinh, parity=_ODD),
    "sqrt": Function(_roots.sqrt),
    "tan": Function(_trigonometric.tan, parity=_ODD),
    "tanh": Function(_exponential.tanh, parity=_ODD),
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
