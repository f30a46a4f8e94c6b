"""Reductions by monoids, in lanes and by threads: exact ones by bits, fast sums by their bound."""

from __future__ import annotations

import math
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from pairwise import pairwise

import backend_c
import hlo
import interp
from hlo.values import Array

_DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "s8": np.int8,
    "u16": np.uint16,
    "s32": np.int32,
    "u64": np.uint64,
    "pred": np.bool_,
}
# The operations whose results do not depend on order, by type.
_ANY_ORDER = {
    **dict.fromkeys(("f32", "f64", "bf16", "f16", "f8e5m2"), ("maximum", "minimum")),
    **dict.fromkeys(
        ("s8", "u16", "s32", "u64"), ("add", "multiply", "maximum", "minimum", "and", "or", "xor")
    ),
    "pred": ("and", "or", "xor"),
}
_SUMS = ("f32", "f64", "bf16", "f16")
# Rows, columns, blocks of both, everything between, and nothing.
_SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((7,), (0,)),
    ((70001,), (0,)),
    ((40, 601), (1,)),
    ((40, 601), (0,)),
    ((4001, 3), (0,)),
    ((2, 70001), (1,)),
    ((70001, 2), (0,)),
    ((4, 50, 60), (0, 2)),
    ((4, 50, 60), (0, 1, 2)),
    ((30, 70, 40), (0, 1)),
    ((3, 4, 5, 6), (1, 3)),
    ((3, 40, 5, 6), (1, 3)),
    ((2, 17, 3, 4, 20), (1, 3, 4)),
    ((3, 40, 9, 5), (1,)),
    ((501, 2, 3), (1, 2)),
    ((40, 33, 3), (1,)),
    ((100, 1, 700), (0,)),
    ((1, 1), (0,)),
    ((3, 5), ()),
    ((0, 3), (0,)),
    ((3, 0), (0,)),
)


def _program(dims: tuple[int, ...], reduced: tuple[int, ...], cases: list[tuple[str, str]]) -> str:
    """The text of one reduce for each (type, operation), of parameters (operand, init) of each."""
    kept = ",".join(str(dim) for d, dim in enumerate(dims) if d not in reduced)
    whole, of = ",".join(map(str, dims)), ",".join(map(str, reduced))
    computations, lines = [], []
    for n, (t, op) in enumerate(cases):
        computations.append(
            f"f{n} {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT c = {t}[] {op}(a, b) }}"
        )
        lines += [
            f"x{n} = {t}[{whole}] parameter({2 * n})",
            f"i{n} = {t}[] parameter({2 * n + 1})",
            f"r{n} = {t}[{kept}] reduce(x{n}, i{n}), dimensions={{{of}}}, to_apply=f{n}",
        ]
    shapes = ", ".join(f"{t}[{kept}]" for t, _ in cases)
    results = ", ".join(f"r{n}" for n in range(len(cases)))
    body = "\n".join([*lines, f"ROOT all = ({shapes}) tuple({results})"])
    return "\n".join(["HloModule m", *computations, f"ENTRY e {{ {body} }}"])


def _operand(rng: np.random.Generator, element_type: str, operation: str, dims: Any) -> Array:
    values = rng.normal(size=dims) * 3
    if element_type == "pred":
        return rng.random(dims) < (0.02 if operation == "or" else 0.98)
    if _DTYPES[element_type] in (np.int8, np.uint16, np.int32, np.uint64):
        return (values * 50).astype(np.int64).astype(_DTYPES[element_type])
    if operation in ("maximum", "minimum"):
        for special, share in ((np.nan, 0.001), (-0.0, 0.3), (0.0, 0.3), (np.inf, 0.001)):
            values[rng.random(dims) < share] = special
        if operation == "maximum":
            values = -np.abs(values)
    return values.astype(_DTYPES[element_type])


def _bits_but_nan(array: Array) -> Array:
    """The bits of an array, those of any NaN the same."""
    if array.dtype.kind in "biu":
        return array
    wide = array.astype(np.float64)
    wide[np.isnan(wide)] = np.nan
    return wide.view(np.uint64)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("number", "dims", "reduced"), [(n, *shape) for n, shape in enumerate(_SHAPES)]
)
@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_what_any_order_gives(numerics: str, number: int, dims: Any, reduced: Any) -> None:
    rng = np.random.default_rng(len(dims) + sum(dims))
    cases = pairwise(_ANY_ORDER, number + 2 * (numerics == "fast"))
    module = hlo.parse(_program(dims, reduced, cases))
    arguments: list[Array] = []
    for t, op in cases:
        arguments.append(_operand(rng, t, op, dims))
        arguments.append(np.asarray(_operand(rng, t, op, (1,))[0]))
    expected = interp.evaluate(module, *arguments)
    executable = backend_c.compile(module, numerics=numerics)
    for threads in (1, 3):
        found = executable.in_threads(threads)(*arguments)
        for case, one, other in zip(cases, expected, found, strict=True):
            assert np.array_equal(_bits_but_nan(one), _bits_but_nan(other)), case


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("dims", "reduced"), _SHAPES)
def test_fast_sums_and_products(dims: Any, reduced: Any) -> None:
    """|error| ≤ γ_n · Σ|x| in f32 (f64 for f64), and one rounding to the type; the same bits with
    any number of threads. Products: (1 + u)^n relative."""
    rng = np.random.default_rng(sum(dims))
    cases = [(t, op) for t in _SUMS for op in ("add", "multiply")]
    module = hlo.parse(_program(dims, reduced, cases))
    arguments: list[Array] = []
    for t, op in cases:
        x = rng.normal(size=dims)
        near_one = 1 + x / (50 * max(1, max(dims, default=1)) ** 0.5)
        arguments.append((near_one if op == "multiply" else x).astype(_DTYPES[t]))
        arguments.append(np.asarray(1.5, _DTYPES[t]))
    executable = backend_c.compile(module, numerics="fast")
    runs = [executable.in_threads(threads)(*arguments) for threads in (1, 2, 3)]
    count = math.prod(dims[d] for d in reduced) + 1
    for n, (t, op) in enumerate(cases):
        x = arguments[2 * n].astype(np.longdouble)
        unit = 2.0**-53 if t == "f64" else 2.0**-24
        if op == "add":
            exact = x.sum(axis=reduced) + 1.5
            size = np.abs(x).sum(axis=reduced) + 1.5
        else:
            exact = x.prod(axis=reduced) * 1.5
            size = np.abs(exact)
        result = runs[0][n]
        gamma = count * unit / (1 - count * unit)
        stored = float(ml_dtypes.finfo(_DTYPES[t]).eps) * (np.abs(exact) + gamma * size)
        error = np.abs(result.astype(np.longdouble) - exact)
        assert result.shape == exact.shape
        assert np.all(error <= gamma * size + stored), (t, op)
        assert all(run[n].tobytes() == result.tobytes() for run in runs), (t, op)


def test_columns_of_several_dimensions_are_one_loop() -> None:
    """The division of an outer loop's index does not end loops over neighbours of two
    dimensions."""
    program = _program((16, 128, 64, 8), (1,), [("f32", "add")])
    (source,) = backend_c.compile(hlo.parse(program), numerics="fast").source.values()
    assert re.search(r"omp simd\n\s+for \(int64_t \w+ = 0; \w+ < 512;", source), source
