"""Sorts by known orders, however their comparators are written, and first elements, by bits."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from backend_c.kernels.parts.sorting.orderings import Order, order_of
from backend_c.pipeline import lowered
from fuzz.compilers.combined_programs import merged
from hlo.bit_equality import differences
from hlo.values import Array

# Comparators of a and b by the order that they are; without one, they are none.
_TOTAL = "ROOT r = pred[] compare(a, b), direction={direction}, type=TOTALORDER"
_PLAIN = "ROOT r = pred[] compare(a, b), direction={direction}"
_MERGED = """
  no = {type}[] constant(nan)
  zero = {type}[] constant(0)
  aa = pred[] compare(a, a), direction=NE
  az = pred[] compare(a, zero), direction=EQ
  a1 = {type}[] select(az, zero, a)
  a2 = {type}[] select(aa, no, a1)
  bb = pred[] compare(b, b), direction=NE
  bz = pred[] compare(b, zero), direction=EQ
  b1 = {type}[] select(bz, zero, b)
  b2 = {type}[] select(bb, no, b1)
  ROOT r = pred[] compare(a2, b2), direction={direction}, type=TOTALORDER"""
# The same by logic: a < b, or only b is NaN.
_LOGIC = """
  less = pred[] compare(a, b), direction=LT
  an = pred[] compare(a, a), direction=EQ
  bn = pred[] compare(b, b), direction=NE
  only = pred[] and(an, bn)
  ROOT r = pred[] or(less, only)"""
_FLOATS = ("f32", "f64", "bf16", "f16", "f8e5m2")
_INTEGERS = ("s8", "u8", "s16", "u32", "s32", "s64", "u64", "pred")
_DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "s8": np.int8,
    "u8": np.uint8,
    "s16": np.int16,
    "u32": np.uint32,
    "s32": np.int32,
    "s64": np.int64,
    "u64": np.uint64,
    "pred": np.bool_,
}
# Rows that are inserted, of short and of long digits, in chunks; along every dimension.
_SHAPES = (
    ((2,), 0),
    ((3, 48), 1),
    ((3, 49), 1),
    ((5, 700), 1),
    ((700, 5), 0),
    ((9, 4099), 1),
    ((40001,), 0),
    ((2, 33000), 1),
    ((4, 120, 3), 1),
)


def _comparator(body: str, element_type: str, direction: str, first: int = 0) -> str:
    return f"""c {{
  a = {element_type}[] parameter({first})
  b = {element_type}[] parameter({first + 1})
  {body.format(type=element_type, direction=direction)}
}}
"""


def _sort(comparator: str, element_type: str, dims: tuple[int, ...], dimension: int) -> str:
    shape = f"{element_type}[{','.join(map(str, dims))}]"
    return f"""HloModule m
{comparator}
ENTRY e {{
  x = {shape} parameter(0)
  ROOT s = {shape} sort(x), dimensions={{{dimension}}}, is_stable=true, to_apply=c
}}
"""


def _pairs(comparator: str, element_type: str, dims: tuple[int, ...], dimension: int) -> str:
    """The text of an argsort, whose keys are the second operand."""
    sizes = ",".join(map(str, dims))
    types = f"s32[{sizes}]", f"{element_type}[{sizes}]", f"f32[{sizes}]"
    comparator = comparator.replace(
        "c {", "c {\n  p0 = s32[] parameter(0)\n  p1 = s32[] parameter(1)"
    )
    comparator = comparator.replace(
        "c {", "c {\n  p4 = f32[] parameter(4)\n  p5 = f32[] parameter(5)"
    )
    return f"""HloModule m
{comparator}
ENTRY e {{
  x = {types[1]} parameter(0)
  y = {types[2]} parameter(1)
  n = {types[0]} iota(), iota_dimension={dimension}
  ROOT s = ({", ".join(types)}) sort(n, x, y), dimensions={{{dimension}}},
    is_stable=true, to_apply=c
}}
"""


def _values(element_type: str, dims: tuple[int, ...]) -> Array:
    """Values with ties, zeros of both signs and NaN of both."""
    rng = np.random.default_rng(sum(dims))
    dtype = np.dtype(_DTYPES[element_type])
    if dtype.kind == "b":
        return rng.random(dims) < 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        ends = rng.choice(np.array([info.min, info.max], dtype), dims)
        values = rng.integers(0, 100, dims).astype(dtype) - dtype.type(50 * (dtype.kind == "i"))
        return np.asarray(np.where(rng.random(dims) < 0.05, ends, values))
    drawn = np.round(rng.normal(size=dims) * 16) / 8 * np.exp2(rng.integers(-3, 3, dims))
    for special in (np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0):
        drawn[rng.random(dims) < 0.03] = special
    return np.asarray(drawn.astype(dtype))


def _assert_same(*cases: tuple[str, *tuple[Array, ...]]) -> None:
    """Assert equal bits of programs with their arguments, which take one compilation."""
    modules = [hlo.parse(text) for text, *_ in cases]
    for module in modules:
        assert "hlo_sort_" in str(lowered(module).kernels)
    every = [interp.evaluate(module, *case[1:]) for module, case in zip(modules, cases)]
    flat = [array for _, *arrays in cases for array in arrays]
    executable = backend_c.compile(merged(modules), numerics="exact")
    for threads in (1, 3):
        found = executable.in_threads(threads)(*flat)
        for (text, *_), expected, one in zip(cases, every, found, strict=True):
            assert not differences(expected, one), text


@pytest.mark.sampled(3)
@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize(("dims", "dimension"), _SHAPES)
@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_sorts_by_bits(direction: str, dims: tuple[int, ...], dimension: int) -> None:
    bodies = [(t, body) for t in _FLOATS[:3] for body in (_TOTAL, _MERGED)]
    kinds = [*bodies, *((t, _PLAIN) for t in ("s8", "u32", "s64"))]
    comparators = [(t, _comparator(body, t, direction)) for t, body in kinds]
    _assert_same(*((_sort(c, t, dims, dimension), _values(t, dims)) for t, c in comparators))


@pytest.mark.sampled(2)
@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("element_type", [*_FLOATS, *_INTEGERS])
def test_pairs_by_bits(element_type: str) -> None:
    body = _MERGED if element_type in _FLOATS else _PLAIN
    cases: list[tuple[str, Array, Array]] = []
    for direction, (dims, dimension) in zip(("LT", "GT", "LT"), _SHAPES[3:9:2], strict=True):
        comparator = _comparator(body, element_type, direction, 2)
        text = _pairs(comparator, element_type, dims, dimension)
        cases.append((text, _values(element_type, dims), _values("f32", dims)))
    _assert_same(*cases)


@pytest.mark.sampled(2)
@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("element_type", ["f32", "bf16", "s32", "u8", "f64", "s64"])
def test_topk_by_bits(element_type: str) -> None:
    """Whether elements rise, fall (every one then enters the selection), or are random."""
    lengths = ((40, 7), (2000, 1), (2000, 33), (5000, 4000))
    _assert_same(*(_topk(element_type, length, k) for length, k in lengths))


def _topk(element_type: str, length: int, k: int) -> tuple[str, Array]:
    """The text of the first elements of rows from both ends, and its argument."""
    text = f"""HloModule m
ENTRY e {{
  x = {element_type}[5,{length}] parameter(0)
  l = ({element_type}[5,{k}], s32[5,{k}]) topk(x), k={k}, largest=true
  s = ({element_type}[5,{k}], s32[5,{k}]) topk(x), k={k}, largest=false
  ROOT r = (({element_type}[5,{k}], s32[5,{k}]), ({element_type}[5,{k}], s32[5,{k}])) tuple(l, s)
}}
"""
    x = _values(element_type, (5, length))
    order = np.argsort(x[1].astype(np.float64), kind="stable")
    x[1], x[2] = x[1][order], x[1][order[::-1]]
    return text, x


def _known(body: str, element_type: str, direction: str) -> Order | None:
    text = _sort(_comparator(body, element_type, direction), element_type, (2,), 0)
    return order_of(hlo.parse(text).computations[0])


@pytest.mark.parametrize("element_type", [*_FLOATS, *_INTEGERS])
def test_orders_are_known_however_they_are_written(element_type: str) -> None:
    for direction, falls in (("LT", False), ("GT", True)):
        if element_type not in _FLOATS:
            assert _known(_PLAIN, element_type, direction) == Order(0, falls, merged=False)
            continue
        assert _known(_TOTAL, element_type, direction) == Order(0, falls, merged=False)
        assert _known(_MERGED, element_type, direction) == Order(0, falls, merged=True)
    if element_type in _FLOATS:
        assert _known(_LOGIC, element_type, "") == Order(0, falls=False, merged=True)


@pytest.mark.parametrize(
    ("body", "direction"),
    [
        (_PLAIN, "LT"),  # no order where there is NaN
        (_TOTAL, "LE"),  # not strict: equal elements would change places
        ("z = f32[] constant(0.5)\n  ROOT r = pred[] compare(a, z), direction=LT", ""),
        ("s = f32[] add(a, b)\n  ROOT r = pred[] compare(s, a), direction=LT", ""),
        ("ROOT r = pred[] constant(true)", ""),
    ],
)
def test_other_comparators_are_not(body: str, direction: str) -> None:
    assert _known(body, "f32", direction) is None
