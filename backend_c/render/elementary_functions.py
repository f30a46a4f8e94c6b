"""Render C definitions of the elementary functions that a translation unit calls.

Their operations are the sequences of :mod:`hlo.elementary`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import cache

from backend_c.render.branches import with_branches
from backend_c.render.conversions import rounded_from_f64
from backend_c.render.dialect import EMBEDDED, OPENMP, Dialect
from backend_c.render.elementary_machine import (
    CFloatMachine,
    CMachine,
    Value,
    complex_function_text,
    function_text,
)
from hlo import elementary
from hlo.elementary.fast import (
    BOUNDED_F64,
    FAST_FUNCTIONS,
    FAST_FUNCTIONS_F64,
    SINGLE,
    Bounded,
    evaluate_fast,
    evaluate_fast_f64,
)
from hlo.types import ELEMENT_TYPES, F64, ElementType

_RUNTIME = ("sqrt", "sqrt_f64")  # IEEE's own operation: runtime/hlo_float.h has it
_CALL = re.compile(r"\bhlo_(\w+)\(")
_OPERANDS = ("x", "y")
_LONG = (
    300  # lines of a sequence: a call more costs nothing beside it, a copy more much of gcc's time
)
# Functions of ``fast`` that have a sequence for small operands, and the exact one for the others.
_IN_TWO_PASSES = {f"{one.of}_f64_fast": one for one in BOUNDED_F64}
# Functions whose exact sequence takes ten times as long as the fast one of f64, for narrow types,
# too. Arrays of results that are rounded to a narrow type come from the fast one; where its error
# may decide the rounding, the exact one computes the element again.
_QUICK = frozenset({"atan2", "power"})
_ROUNDED_LANES = re.compile(rf"({'|'.join(sorted(_QUICK))})_to_(\w+)_lanes")
# Relative to a result: 16 units in the last place of f64, of which the fast sequences err by less
# than one (``docs/proofs.md``).
_QUICK_ERROR = 2.0**-48


def lanes_function(name: str, element_type: ElementType) -> str:
    """Return the name of the function of f64 whose array version is called for results that are
    then rounded to a type: HLO_NAME_lanes."""
    return f"{name}_to_{element_type}" if name in _QUICK and element_type is not F64 else name


def definitions(body: str, dialect: Dialect) -> str:
    """Render the definitions of all elementary functions that ``body`` calls, in order of first
    use.

    These are ``hlo_NAME`` and ``hlo_NAME_f64_fast`` of doubles, ``hlo_NAME_fast`` of floats, those
    of complex numbers, and ``hlo_NAMES_lanes`` of arrays of doubles.
    """
    texts = dict[str, None]()
    for name in dict.fromkeys(match[1] for match in _CALL.finditer(body)):
        if name.endswith("_lanes"):
            functions = name.removesuffix("_lanes").split("_and_")
            if rounded := _ROUNDED_LANES.fullmatch(name):
                texts |= dict.fromkeys(_rounded_parts(rounded[1], ELEMENT_TYPES[rounded[2]]))
            elif all(name in _IN_TWO_PASSES or _is_sequence(name) for name in functions):
                parts = itertools.chain(*map(_elements, functions))
                texts |= dict.fromkeys([*parts, _procedure_of_lanes(*functions)])
        elif name in _IN_TWO_PASSES or (dialect is OPENMP and is_long(name)):
            texts |= dict.fromkeys([*_elements(name), _procedure(name)])
        elif _is_sequence(name):
            texts[_function(name, dialect.function)] = None
        elif name.removesuffix("_fast") in FAST_FUNCTIONS and name.endswith("_fast"):
            called = name.removesuffix("_fast")
            # Targets that compute f64 in software have sequences of f32 alone, if there are any.
            own = SINGLE.get(called, called) if dialect is EMBEDDED else called
            texts[_fast_function(called, own, dialect.function)] = None
        elif name.removesuffix("_f64_fast") in FAST_FUNCTIONS_F64 and name.endswith("_f64_fast"):
            texts[_fast_f64_function(name.removesuffix("_f64_fast"), dialect.function)] = None
        elif name in elementary.COMPLEX_FUNCTIONS:
            texts[_complex_function(name)] = None
    text = "\n".join(texts)
    return with_branches(text) if dialect is EMBEDDED else text


def is_long(name: str) -> bool:
    """Return whether a function of f64 is so long that loops call it rather than inline it."""
    return name in _IN_TWO_PASSES or lines_of(name) > _LONG


def lines_of(name: str) -> int:
    """Count the lines of a function's sequence, about one for each operation; 0 if it has none."""
    return _function(name, "HLO_FUNCTION").count("\n") if _is_sequence(name) else 0


def _is_sequence(name: str) -> bool:
    """Return whether a function is defined by a sequence of :mod:`hlo.elementary`."""
    return name in elementary.FUNCTIONS and name not in _RUNTIME


@cache
def _element(name: str) -> str:
    """Render a long function's sequence, which its scalar and its array version call."""
    return _function(name, "HLO_FUNCTION").replace(f" hlo_{name}(", f" hlo_{name}_element(", 1)


def _elements(name: str) -> list[str]:
    """Render the sequences that a function's versions call: one, or a short and an exact one."""
    if name not in _IN_TWO_PASSES:
        return [_element(name)]
    near = _IN_TWO_PASSES[name]
    return [_fast_f64_function(near.name, "HLO_FUNCTION"), _element(f"{near.of}_f64")]


@cache
def _procedure(name: str) -> str:
    """Render the scalar version of a long function: a call, or a choice between two sequences."""
    near = _IN_TWO_PASSES.get(name)
    exact = f"{near.of}_f64" if near else name
    operands = _OPERANDS[: elementary.FUNCTIONS[exact].arity]
    parameters = ", ".join(f"double {one}" for one in operands)
    result = f"hlo_{exact}_element({', '.join(operands)})"
    if near:
        result = f"{_is_beyond(near, 'x')} ? {result} : hlo_{near.name}_f64_fast(x)"
    return f"""\
HLO_PROCEDURE double hlo_{name}({parameters}) {{
    return {result};
}}
"""


def _is_beyond(near: Bounded, operand: str) -> str:
    """Render the test for operands beyond a short sequence's range; false for NaN."""
    return f"hlo_abs_f64({operand}) > {near.largest!r}"


@cache
def _procedure_of_lanes(*names: str) -> str:
    """Render the array version of long functions: results for ``n`` elements each.

    Arrays have a multiple of 8 elements, and the padding beyond ``n`` is computed, too: vectors
    leave no remainder then, which compilers would write once more for each narrower vector.
    """
    near = [_IN_TWO_PASSES[name] for name in names if name in _IN_TWO_PASSES]
    exact = [f"{one.of}_f64" for one in near] or names
    operands = _OPERANDS[: elementary.FUNCTIONS[exact[0]].arity]
    results = [f"result_{k}" for k in range(len(names))]
    elements = ", ".join(f"{one}[i]" for one in operands)
    loops = _two_passes(near, results) if near else _one_pass(names, results, elements)
    return _array_version("_and_".join(names), operands, results, loops)


def _array_version(
    name: str, operands: Sequence[str], results: Sequence[str], loops: Sequence[str]
) -> str:
    """Render an array version around its loops over the ``whole`` elements, padding included."""
    arrays = ", ".join(f"double *HLO_RESTRICT {one}" for one in (*operands, *results))
    lines = [
        f"HLO_PROCEDURE void hlo_{name}_lanes({arrays}, int64_t n) {{",
        "    const int64_t whole = (n + 7) & ~(int64_t)7;",
        # The padding is uninitialised memory: 1.0 is within the range of each short sequence, and
        # its results are in no doubt, so that it never makes a second pass run.
        "    for (int64_t i = n; i < whole; ++i) {",
        *(f"        {one}[i] = 1.0;" for one in operands),
        "    }",
        *loops,
        "}",
        "",
    ]
    return "\n".join(lines)


def _one_pass(names: Sequence[str], results: Sequence[str], elements: str) -> list[str]:
    """Render the loop of an array version that has one sequence for all operands."""
    return [
        "    #pragma omp simd",
        "    for (int64_t i = 0; i < whole; ++i) {",
        *(
            f"        {result}[i] = hlo_{name}_element({elements});"
            for result, name in zip(results, names, strict=True)
        ),
        "    }",
    ]


def _two_passes(near: Sequence[Bounded], results: Sequence[str]) -> list[str]:
    """Render a loop of short sequences, and one of exact ones that runs if an operand was too
    large.

    The functions have one bound. The second loop keeps the results of the small operands.
    """
    is_beyond = _is_beyond(near[0], "x[i]")
    both = list(zip(results, near, strict=True))
    return [
        "    int64_t beyond = 0;",
        "    #pragma omp simd reduction(|: beyond)",
        "    for (int64_t i = 0; i < whole; ++i) {",
        *(f"        {result}[i] = hlo_{one.name}_f64_fast(x[i]);" for result, one in both),
        f"        beyond |= {is_beyond};",
        "    }",
        "    if (!beyond) {",
        "        return;",
        "    }",
        "    #pragma omp simd",
        "    for (int64_t i = 0; i < whole; ++i) {",
        *(
            f"        const double exact_{n} = hlo_{one.of}_f64_element(x[i]);"
            for n, one in enumerate(near)
        ),
        *(
            f"        {result}[i] = {is_beyond} ? exact_{n} : {result}[i];"
            for n, result in enumerate(results)
        ),
        "    }",
    ]


def _rounded_parts(name: str, element_type: ElementType) -> list[str]:
    """Render the array version of a function for results of a narrow type, and what it calls."""
    quick = _fast_f64_function(name, "HLO_FUNCTION")
    return [
        quick,
        _element(name),
        _procedure(name),
        _procedure_of_rounded_lanes(name, element_type),
    ]


@cache
def _procedure_of_rounded_lanes(name: str, element_type: ElementType) -> str:
    """Render the array version of a function by its fast sequence, and by the exact one where the
    former leaves two results of a type; both agree on which results are NaN."""
    operands = _OPERANDS[: elementary.FUNCTIONS[name].arity]
    elements = ", ".join(f"{one}[i]" for one in operands)
    ends = (f"(quick * {1 + sign * _QUICK_ERROR!r})" for sign in (-1, 1))
    least, most = (rounded_from_f64(end, element_type) for end in ends)
    is_in_doubt = f"(quick == quick) & ({least} != {most})"
    loops = [
        "    int64_t in_doubt = 0;",
        "    #pragma omp simd reduction(+ : in_doubt)",
        "    for (int64_t i = 0; i < whole; ++i) {",
        f"        const double quick = hlo_{name}_f64_fast({elements});",
        "        result_0[i] = quick;",
        f"        in_doubt += {is_in_doubt};",
        "    }",
        "    for (int64_t i = 0; i < n && in_doubt; ++i) {",
        "        const double quick = result_0[i];",
        f"        if ({is_in_doubt}) {{",
        f"            result_0[i] = hlo_{name}({elements});",
        "        }",
        "    }",
    ]
    return _array_version(f"{name}_to_{element_type}", operands, ["result_0"], loops)


@cache  # as many as there are functions
def _function(name: str, prefix: str) -> str:
    """Render the definition of a function of f64 by its exact sequence."""

    def sequence(*operands: Value) -> Value:
        return elementary.evaluate(name, CMachine(), *operands)

    arity = elementary.FUNCTIONS[name].arity
    return function_text(f"hlo_{name}", prefix, arity, sequence)


@cache
def _fast_function(name: str, own: str, prefix: str) -> str:
    """Render a function of f32 by the sequence ``own``, whose error is below 1 ulp."""

    def sequence(*operands: Value) -> Value:
        return evaluate_fast(own, CFloatMachine(), *operands)

    arity = FAST_FUNCTIONS[own].arity
    return function_text(f"hlo_{name}_fast", prefix, arity, sequence, "float")


@cache
def _fast_f64_function(name: str, prefix: str) -> str:
    """Render a function of f64 by its fast sequence, whose error is below 1 ulp."""

    def sequence(*operands: Value) -> Value:
        return evaluate_fast_f64(name, CMachine(), *operands)

    arity = FAST_FUNCTIONS_F64[name].arity
    return function_text(f"hlo_{name}_f64_fast", prefix, arity, sequence)


@cache
def _complex_function(name: str) -> str:
    """Render a function of complex numbers, computed in double."""

    def sequence(*components: Value) -> tuple[Value, ...]:
        return elementary.evaluate_complex(name, CMachine(), *components)

    arity = elementary.COMPLEX_FUNCTIONS[name].arity
    whole = f"hlo_{name.rpartition('_')[2]}"
    return complex_function_text(f"hlo_{name}", "HLO_PROCEDURE", whole, arity, sequence)
