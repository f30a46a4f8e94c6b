"""Render the elementary functions that a translation unit calls, by hlo.elementary's sequences."""

from __future__ import annotations

import re
from functools import cache

from backend_c.render.dialect import OPENMP, Dialect
from backend_c.render.elementary_machine import (
    CFloatMachine,
    CMachine,
    Value,
    complex_function_text,
    function_text,
)
from hlo import elementary
from hlo.elementary.fast import (
    FAST_FUNCTIONS,
    FAST_FUNCTIONS_F64,
    evaluate_fast,
    evaluate_fast_f64,
)

_RUNTIME = ("sqrt", "sqrt_f64")  # IEEE's own operation: runtime/hlo_float.h has it
_CALL = re.compile(r"\bhlo_(\w+)\(")
_OPERANDS = ("x", "y")
_LONG = (
    300  # lines of a sequence: a call more costs nothing beside it, a copy more much of gcc's time
)


def definitions(body: str, dialect: Dialect) -> str:
    """Render the functions ``hlo_NAME`` and ``hlo_NAME_f64_fast`` of doubles, ``hlo_NAME_fast`` of
    floats and those of complex numbers that ``body`` calls, in order of first use."""
    texts = dict[str, None]()
    for name in dict.fromkeys(match[1] for match in _CALL.finditer(body)):
        if name.endswith("_lanes"):
            functions = name.removesuffix("_lanes").split("_and_")
            if all(map(is_long, functions)):
                texts |= dict.fromkeys([*map(_element, functions), _procedure_of_lanes(*functions)])
        elif dialect is OPENMP and is_long(name):
            texts |= dict.fromkeys([_element(name), _procedure(name)])
        elif name in elementary.FUNCTIONS and name not in _RUNTIME:
            texts[_function(name, dialect.function)] = None
        elif name.removesuffix("_fast") in FAST_FUNCTIONS and name.endswith("_fast"):
            texts[_fast_function(name.removesuffix("_fast"), dialect.function)] = None
        elif name.removesuffix("_f64_fast") in FAST_FUNCTIONS_F64 and name.endswith("_f64_fast"):
            texts[_fast_f64_function(name.removesuffix("_f64_fast"), dialect.function)] = None
        elif name in elementary.COMPLEX_FUNCTIONS:
            texts[_complex_function(name)] = None
    return "\n".join(texts)


def is_long(name: str) -> bool:
    """Return whether a function of f64 values is so long that loops call it."""
    known = name in elementary.FUNCTIONS and name not in _RUNTIME
    return known and _function(name, "HLO_FUNCTION").count("\n") > _LONG


@cache
def _element(name: str) -> str:
    """Render what the procedures of a long function share."""
    return _function(name, "HLO_FUNCTION").replace(f" hlo_{name}(", f" hlo_{name}_element(", 1)


@cache
def _procedure(name: str) -> str:
    """Render a long function of one element."""
    operands = _OPERANDS[: elementary.FUNCTIONS[name].arity]
    parameters = ", ".join(f"double {one}" for one in operands)
    return f"""\
HLO_PROCEDURE double hlo_{name}({parameters}) {{
    return hlo_{name}_element({", ".join(operands)});
}}
"""


@cache
def _procedure_of_lanes(*names: str) -> str:
    """Render long functions of each of ``n`` elements.

    Arrays have a multiple of 8 elements, and what is beyond ``n`` is computed, too: vectors leave
    no rest then, which compilers would write once more for each narrower vector.
    """
    operands = _OPERANDS[: elementary.FUNCTIONS[names[0]].arity]
    results = [f"result_{k}" for k in range(len(names))]
    arrays = ", ".join(f"double *HLO_RESTRICT {one}" for one in (*operands, *results))
    elements = ", ".join(f"{one}[i]" for one in operands)
    lines = [
        f"HLO_PROCEDURE void hlo_{'_and_'.join(names)}_lanes({arrays}, int64_t n) {{",
        "    const int64_t whole = (n + 7) & ~(int64_t)7;",
        "    for (int64_t i = n; i < whole; ++i) {",
        *(f"        {one}[i] = 1.0;" for one in operands),
        "    }",
        "    #pragma omp simd",
        "    for (int64_t i = 0; i < whole; ++i) {",
        *(
            f"        {result}[i] = hlo_{name}_element({elements});"
            for result, name in zip(results, names, strict=True)
        ),
        "    }",
        "}",
        "",
    ]
    return "\n".join(lines)


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
def _fast_f64_function(name: str, prefix: str) -> str:
    """Render a function of f64 values, of an error below one unit in the last place."""

    def sequence(*operands: Value) -> Value:
        return evaluate_fast_f64(name, CMachine(), *operands)

    arity = FAST_FUNCTIONS_F64[name].arity
    return function_text(f"hlo_{name}_f64_fast", prefix, arity, sequence)


@cache
def _complex_function(name: str) -> str:
    """Render a function of complex numbers in registers; it computes in double."""

    def sequence(*components: Value) -> tuple[Value, ...]:
        return elementary.evaluate_complex(name, CMachine(), *components)

    arity = elementary.COMPLEX_FUNCTIONS[name].arity
    whole = f"hlo_{name.rpartition('_')[2]}"
    return complex_function_text(f"hlo_{name}", "HLO_PROCEDURE", whole, arity, sequence)
