"""Evaluate elementary functions by one fixed sequence of float64 operations on any machine.

Each function of HLO (exponential, log, sine, …) is written once, as a branch-free Python function
over the abstract machine of ``hlo/elementary/machine.py``. NumPy arrays, generated C and the proofs
are machines, so all of them perform the same IEEE 754 operations and give the same bits, without a
math library.

* ``evaluate("exponential", machine, x)`` runs the *narrow* sequence. ``x`` holds f32 or narrower
  values, widened exactly to float64; the result has an error of a few 2**-53, so that rounding it
  once to f32 or narrower is correct rounding (checked for all 2**32 inputs: ``docs/proofs.md``).
* ``evaluate("exponential_f64", machine, x)`` runs the *wide* sequence for f64 operands, in
  double-double arithmetic (about 100 bits). Its result is already rounded.

``FUNCTIONS`` lists both kinds by name; ``evaluate`` raises Unsupported for any other name.
Functions of complex numbers are in ``hlo/elementary/complex_functions.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hlo.elementary import (
    error_function,
    error_function_f64,
    exponential,
    exponential_f64,
    inverse_trigonometric,
    inverse_trigonometric_f64,
    logarithm,
    logarithm_f64,
    power,
    roots,
    roots_f64,
    trigonometric,
    trigonometric_f64,
)
from hlo.elementary.complex_functions import COMPLEX_FUNCTIONS, evaluate_complex
from hlo.elementary.fourier import roots_of_unity
from hlo.elementary.machine import Machine, V, with_sign_of
from hlo.elementary.misrounded import MISROUNDED
from hlo.errors import Unsupported

__all__ = [
    "COMPLEX_FUNCTIONS",
    "FUNCTIONS",
    "Function",
    "Machine",
    "evaluate",
    "evaluate_complex",
    "roots_of_unity",
]

Sequence = Callable[..., Any]  # (*operands: V, machine: Machine[V]) -> V, for every V


@dataclass(frozen=True, slots=True)
class Function:
    """Describe the sequence of one function.

    ``sequence(*operands, machine)`` takes ``arity`` values. If ``parity`` is "odd" or "even", it is
    only called with a first operand x >= +0, and f(-x) = -f(x) or f(-x) = f(x) supplies the rest:
    half the inputs to prove, and no sign to carry through the formula.
    """

    sequence: Sequence
    arity: int = 1
    parity: str = ""


_ODD, _EVEN = "odd", "even"

# Rows: name, parity in the first operand, number of operands, narrow sequence, wide sequence.
_ROWS: tuple[tuple[str, str, int, Sequence, Sequence], ...] = (
    ("acos", "", 1, inverse_trigonometric.acos, inverse_trigonometric_f64.acos),
    ("acosh", "", 1, logarithm.acosh, logarithm_f64.acosh),
    ("asin", _ODD, 1, inverse_trigonometric.asin, inverse_trigonometric_f64.asin),
    ("asinh", _ODD, 1, logarithm.asinh, logarithm_f64.asinh),
    ("atan", _ODD, 1, inverse_trigonometric.atan, inverse_trigonometric_f64.atan),
    ("atan2", _ODD, 2, inverse_trigonometric_f64.atan2, inverse_trigonometric_f64.atan2_f64),
    ("atanh", _ODD, 1, logarithm.atanh, logarithm_f64.atanh),
    ("cbrt", _ODD, 1, roots.cbrt, roots_f64.cbrt),
    ("cosh", _EVEN, 1, exponential.cosh, exponential_f64.cosh),
    ("cosine", _EVEN, 1, trigonometric.cosine, trigonometric_f64.cosine),
    ("erf", _ODD, 1, error_function.erf, error_function_f64.erf),
    ("exponential", "", 1, exponential.exponential, exponential_f64.exponential),
    (
        *("exponential_minus_one", "", 1),
        *(exponential.exponential_minus_one, exponential_f64.exponential_minus_one),
    ),
    ("log", "", 1, logarithm.log, logarithm_f64.log),
    ("log_plus_one", "", 1, logarithm.log_plus_one, logarithm_f64.log_plus_one),
    ("logistic", "", 1, exponential.logistic, exponential_f64.logistic),
    ("power", "", 2, power.power, power.power_f64),
    ("rsqrt", "", 1, roots.rsqrt, roots_f64.rsqrt),
    ("sine", _ODD, 1, trigonometric.sine, trigonometric_f64.sine),
    ("sinh", _ODD, 1, exponential.sinh, exponential_f64.sinh),
    ("sqrt", "", 1, roots.sqrt, roots.sqrt),
    ("tan", _ODD, 1, trigonometric.tan, trigonometric_f64.tan),
    ("tanh", _ODD, 1, exponential.tanh, exponential_f64.tanh),
)

FUNCTIONS: Mapping[str, Function] = {
    **{name: Function(narrow, arity, parity) for name, parity, arity, narrow, _ in _ROWS},
    **{f"{name}_f64": Function(wide, arity, parity) for name, parity, arity, _, wide in _ROWS},
}


def evaluate(name: str, machine: Machine[V], *operands: V) -> V:
    """Evaluate the function ``name`` of ``FUNCTIONS`` at ``operands`` on a machine.

    Reduces by parity, runs the sequence, and replaces the result at the listed operands where its
    rounding to f32 is known to be wrong (``misrounded.py``). Raises Unsupported for a name without
    a sequence.
    """
    function = FUNCTIONS.get(name)
    if function is None:
        raise Unsupported(f"{name} has no sequence; there are: {', '.join(FUNCTIONS)}")
    assert len(operands) == function.arity, name
    first, *others = operands
    x = machine.absolute(first) if function.parity else first
    result: V = function.sequence(x, *others, machine)
    for operand, correct in MISROUNDED.get(name, ()):
        # A select for each of the one or two operands that a function misrounds, not a table
        # look-up: it vectorises.
        result = machine.select(machine.equal(x, operand), correct, result)
    return with_sign_of(result, first, machine) if function.parity == "odd" else result
