"""Render the elementary functions that a translation unit calls, by hlo.elementary's sequences."""

from __future__ import annotations

import re
from functools import cache

from backend_c.render.dialect import Dialect
from backend_c.render.elementary_machine import (
    CFloatMachine,
    CMachine,
    Value,
    complex_function_text,
    function_text,
)
from hlo import elementary
from hlo.elementary.fast import FAST_FUNCTIONS, evaluate_fast

_RUNTIME = ("sqrt", "sqrt_f64")  # IEEE's own operation: runtime/hlo_float.h has it
_CALL = re.compile(r"\bhlo_(\w+)\(")


def definitions(body: str, dialect: Dialect) -> str:
    """Render the functions ``hlo_NAME`` of doubles, ``hlo_NAME_fast`` of floats and those of
    complex numbers that ``body`` calls, in order of first use."""
    called = dict.fromkeys(match[1] for match in _CALL.finditer(body))
    texts = []
    for name in called:
        if name in elementary.FUNCTIONS and name not in _RUNTIME:
            texts.append(_function(name, dialect.function))
        elif name.removesuffix("_fast") in FAST_FUNCTIONS and name.endswith("_fast"):
            texts.append(_fast_function(name.removesuffix("_fast"), dialect.function))
        elif name in elementary.COMPLEX_FUNCTIONS:
            texts.append(_complex_function(name))
    return "\n".join(texts)


@cache  # as many as there are functions
def _function(name: str, prefix: str) -> str:
    """Render a function of f64 values."""

    def sequence(*operands: Value) -> Value:
        return elementary.evaluate(name, CMachine(), *operands)

    arity = elementary.FUNCTIONS[name].arity
    return function_text(f"hlo_{name}", prefix, arity, sequence)


@cache
def _fast_function(name: str, prefix: str) -> str:
    """Render a function of f32 values, of an error below one unit in the last place."""

    def sequence(*operands: Value) -> Value:
        return evaluate_fast(name, CFloatMachine(), *operands)

    arity = FAST_FUNCTIONS[name].arity
    return function_text(f"hlo_{name}_fast", prefix, arity, sequence, "float")


@cache
def _complex_function(name: str) -> str:
    """Render a function of complex numbers in registers; it computes in double."""

    def sequence(*components: Value) -> tuple[Value, ...]:
        return elementary.evaluate_complex(name, CMachine(), *components)

    arity = elementary.COMPLEX_FUNCTIONS[name].arity
    whole = f"hlo_{name.rpartition('_')[2]}"
    return complex_function_text(f"hlo_{name}", "HLO_PROCEDURE", whole, arity, sequence)
