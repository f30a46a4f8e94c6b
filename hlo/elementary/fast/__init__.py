"""Evaluate elementary functions of f32 within one unit in the last place, in f32 arithmetic.

``numerics="fast"`` uses these sequences where ``exact`` uses those of ``hlo.elementary``, which
round correctly but compute in float64. They are written over the machine of
``hlo/elementary/fast/machine.py``, branch-free and without tables, so that loops of them become
vectors. The error is below one unit in the last place of the exact result for every f32
(``docs/proofs.md``), whether multiplications and additions are fused or not; special values are
those of the exact function, and subnormal numbers count. ``FAST_FUNCTIONS_F64`` are those of f64 in
f64 arithmetic; the others of f64 are exact in ``fast``, too. A function may have shorter sequences
for operands up to a bound, under names of their own (``BOUNDED``, ``BOUNDED_F64``), and one that
takes a little float64 may have another of f32 alone (``SINGLE``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hlo.elementary import Function
from hlo.elementary.fast import (
    error_function,
    error_function_f64,
    exponential,
    exponential_f64,
    hyperbolic,
    inverse_trigonometric,
    inverse_trigonometric_f64,
    logarithm,
    logarithm_f64,
    power,
    power_f64,
    roots,
    single,
    single_power,
    trigonometric,
    trigonometric_f64,
)
from hlo.elementary.fast.machine import DoubleMachine, FloatMachine, with_sign_of
from hlo.elementary.machine import V
from hlo.elementary.machine import with_sign_of as with_sign_of_f64
from hlo.errors import Unsupported

__all__ = [
    "BOUNDED",
    "BOUNDED_F64",
    "FAST_FUNCTIONS",
    "FAST_FUNCTIONS_F64",
    "SINGLE",
    "Bounded",
    "DoubleMachine",
    "FloatMachine",
    "evaluate_fast",
    "evaluate_fast_f64",
]

_ODD, _EVEN = "odd", "even"

FAST_FUNCTIONS: Mapping[str, Function] = {
    "acos": Function(inverse_trigonometric.acos),
    "acosh": Function(logarithm.acosh),
    "asin": Function(inverse_trigonometric.asin, parity=_ODD),
    "asinh": Function(logarithm.asinh, parity=_ODD),
    "atan2": Function(inverse_trigonometric.atan2, arity=2, parity=_ODD),
    "atanh": Function(logarithm.atanh, parity=_ODD),
    "cbrt": Function(roots.cbrt, parity=_ODD),
    "cbrt_single": Function(single.cbrt, parity=_ODD),
    "cosh": Function(hyperbolic.cosh, parity=_EVEN),
    "cosh_single": Function(single.cosh, parity=_EVEN),
    "cosine": Function(trigonometric.cosine, parity=_EVEN),
    "cosine_near": Function(trigonometric.near_cosine, parity=_EVEN),
    "cosine_single": Function(single.cosine, parity=_EVEN),
    "cosine_unit": Function(trigonometric.unit_cosine),
    "erf": Function(error_function.erf, parity=_ODD),
    "exponential": Function(exponential.exponential),
    "exponential_minus_one": Function(exponential.exponential_minus_one),
    "log": Function(logarithm.log),
    "log_plus_one": Function(logarithm.log_plus_one),
    "logistic": Function(exponential.logistic),
    "power": Function(power.power, arity=2),
    "power_single": Function(single_power.power, arity=2),
    "rsqrt": Function(roots.rsqrt),
    "rsqrt_single": Function(single.rsqrt),
    "sine": Function(trigonometric.sine, parity=_ODD),
    "sine_near": Function(trigonometric.near_sine, parity=_ODD),
    "sine_single": Function(single.sine, parity=_ODD),
    "sine_unit": Function(trigonometric.unit_sine),
    "sinh": Function(hyperbolic.sinh, parity=_ODD),
    "sinh_single": Function(single.sinh, parity=_ODD),
    "tan": Function(trigonometric.tan, parity=_ODD),
    "tanh": Function(exponential.tanh, parity=_ODD),
}

FAST_FUNCTIONS_F64: Mapping[str, Function] = {
    "atan2": Function(inverse_trigonometric_f64.atan2, arity=2, parity=_ODD),
    "cosh": Function(exponential_f64.cosh, parity=_EVEN),
    "cosine_near": Function(trigonometric_f64.near_cosine, parity=_EVEN),
    "erf": Function(error_function_f64.erf, parity=_ODD),
    "exponential": Function(exponential_f64.exponential),
    "exponential_minus_one": Function(exponential_f64.exponential_minus_one),
    "log": Function(logarithm_f64.log),
    "log_plus_one": Function(logarithm_f64.log_plus_one),
    "logistic": Function(exponential_f64.logistic),
    "power": Function(power_f64.power, arity=2),
    "sine_near": Function(trigonometric_f64.near_sine, parity=_ODD),
    "sinh": Function(exponential_f64.sinh, parity=_ODD),
    "tan_near": Function(trigonometric_f64.near_tan, parity=_ODD),
    "tanh": Function(exponential_f64.tanh, parity=_ODD),
}


# The functions above that have sequences of f32 alone, under these names.
SINGLE: Mapping[str, str] = {
    name: f"{name}_single" for name in ("cbrt", "cosh", "cosine", "power", "rsqrt", "sine", "sinh")
}


class Bounded(NamedTuple):
    """Name the sequence of the function ``of`` for operands of a magnitude up to ``largest``."""

    name: str
    of: str
    largest: float


# Of f32, the shortest of each function first.
BOUNDED = (
    Bounded("cosine_unit", "cosine", trigonometric.UNIT),
    Bounded("cosine_near", "cosine", trigonometric.NEAR),
    Bounded("sine_unit", "sine", trigonometric.UNIT),
    Bounded("sine_near", "sine", trigonometric.NEAR),
)
# Of f64: larger operands have the exact sequences.
BOUNDED_F64 = (
    Bounded("cosine_near", "cosine", trigonometric_f64.NEAR),
    Bounded("sine_near", "sine", trigonometric_f64.NEAR),
    Bounded("tan_near", "tan", trigonometric_f64.NEAR),
)


def evaluate_fast(name: str, machine: FloatMachine[V], *operands: V) -> V:
    """Evaluate the function ``name`` of ``FAST_FUNCTIONS`` at ``operands`` on a machine.

    Reduces by parity, and runs the sequence. Raises Unsupported for a name without a sequence.
    """
    function = FAST_FUNCTIONS.get(name)
    if function is None:
        raise Unsupported(f"{name} has no fast sequence; there are: {', '.join(FAST_FUNCTIONS)}")
    assert len(operands) == function.arity, name
    first, *others = operands
    x = machine.absolute(first) if function.parity else first
    result: V = function.sequence(x, *others, machine)
    return with_sign_of(result, first, machine) if function.parity == "odd" else result


def evaluate_fast_f64(name: str, machine: DoubleMachine[V], *operands: V) -> V:
    """Evaluate the function ``name`` of ``FAST_FUNCTIONS_F64`` at ``operands`` on a machine.

    Reduces by parity, and runs the sequence.
    """
    function = FAST_FUNCTIONS_F64[name]
    first, *others = operands
    x = machine.absolute(first) if function.parity else first
    result: V = function.sequence(x, *others, machine)
    return with_sign_of_f64(result, first, machine) if function.parity == "odd" else result
