"""List the elementary functions of complex numbers, and evaluate one on any machine.

``evaluate_complex("exponential_c64", machine, re, im)`` returns the components of e**(re + im i) as
float64. Those of ``_c128`` functions are rounded already; rounding those of ``_c64`` functions,
which are rounded to odd, to f32 gives the components of the result. Operands of c64 are widened
exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hlo.elementary import complex_exponential as exponential
from hlo.elementary import complex_logarithm as logarithm
from hlo.elementary import complex_power as power
from hlo.elementary import complex_roots as roots
from hlo.elementary import unbounded
from hlo.elementary.machine import Machine, V
from hlo.errors import Unsupported

Sequence = Callable[..., Any]  # (*components: V, machine, rounding) -> components of the result


@dataclass(frozen=True, slots=True)
class ComplexFunction:
    """Describe a sequence of ``arity`` complex operands and ``results`` components (abs: one)."""

    sequence: Sequence
    arity: int = 1
    results: int = 2


_ROWS: Mapping[str, ComplexFunction] = {
    "acos": ComplexFunction(logarithm.acos),
    "acosh": ComplexFunction(logarithm.acosh),
    "asin": ComplexFunction(logarithm.asin),
    "asinh": ComplexFunction(logarithm.asinh),
    "atan2": ComplexFunction(power.atan2, 2),
    "atanh": ComplexFunction(logarithm.atanh),
    "cosh": ComplexFunction(exponential.cosh),
    "cosine": ComplexFunction(exponential.cosine),
    "exponential": ComplexFunction(exponential.exponential),
    "exponential_minus_one": ComplexFunction(exponential.exponential_minus_one),
    "log": ComplexFunction(logarithm.log),
    "log_plus_one": ComplexFunction(logarithm.log_plus_one),
    "logistic": ComplexFunction(exponential.logistic),
    "power": ComplexFunction(power.power, 2),
    "rsqrt": ComplexFunction(roots.rsqrt),
    "sine": ComplexFunction(exponential.sine),
    "sinh": ComplexFunction(exponential.sinh),
    "sqrt": ComplexFunction(roots.sqrt),
    "tan": ComplexFunction(exponential.tan),
    "tanh": ComplexFunction(exponential.tanh),
}

# abs, sign and divide of c64 are in runtime/hlo_complex.h and in NumPy: their operands are exact in
# f64, and a few float64 operations do.
COMPLEX_FUNCTIONS: Mapping[str, ComplexFunction] = {
    **{f"{name}_c64": function for name, function in _ROWS.items()},
    **{f"{name}_c128": function for name, function in _ROWS.items()},
    "abs_c128": ComplexFunction(roots.abs_, results=1),
    "divide_c128": ComplexFunction(roots.divide, 2),
    "sign_c128": ComplexFunction(roots.sign),
}


def evaluate_complex(name: str, machine: Machine[V], *components: V) -> tuple[V, ...]:
    """Evaluate the function ``name`` of ``COMPLEX_FUNCTIONS`` at operands given by components.

    Each component of the result is rounded once. Raises Unsupported for a name without a sequence.
    """
    function = COMPLEX_FUNCTIONS.get(name)
    if function is None:
        raise Unsupported(f"{name} has no sequence; there are: {', '.join(COMPLEX_FUNCTIONS)}")
    assert len(components) == 2 * function.arity, name
    rounding = unbounded.to_f64 if name.endswith("_c128") else unbounded.to_f32_odd

    def rounded(a: unbounded.Unbounded[V]) -> V:
        return rounding(a, machine)

    # Where C's annex G takes a sign from a NaN or leaves one open, a NaN counts as positive: the
    # sign that a computed NaN has differs between processors.
    operands = [machine.select(machine.equal(x, x), x, machine.absolute(x)) for x in components]
    result: tuple[V, ...] = function.sequence(*operands, machine, rounded)
    return result
