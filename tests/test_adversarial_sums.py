"""Sums and dots of numbers that are hard to add up: both columns give the exact sum rounded once.

Rows of addends that cancel, of all exponents at once, half way between two results or so close to
it that no wider float sees it, with infinities and NaN, and of zeros of both signs; added by every
instruction that adds, along rows and across them. The third witness is rational arithmetic.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from backend_c.native.executable import Executable
from fuzz.compilers.combined_programs import compiled, merged
from fuzz.compilers.quick_compilers import thorough
from hlo.bit_equality import differences
from hlo.types import ELEMENT_TYPES
from hlo.values import Array

TYPES = ("f64", "f32", "f16", "bf16", "f8e5m2", "f8e4m3fn", "c64", "c128")
ROWS = 8
LENGTHS = (7, 80)  # within one vector, and several blocks


# ---- the truth ----


def nearest(exact: Fraction, dtype: Any) -> Any:
    """The number of a float type next to an exact one, of two the even one."""
    info = ml_dtypes.finfo(dtype)
    magnitude, sign = abs(exact), -1.0 if exact < 0 else 1.0
    if not magnitude:
        return dtype.type(0)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > magnitude
    unit = max(exponent, int(info.minexp)) - int(info.nmant)
    significand = round(magnitude / Fraction(2) ** unit)  # Python rounds ties to even
    value = Fraction(significand) * Fraction(2) ** unit
    if value > Fraction(float(info.max)):
        with np.errstate(all="ignore"):  # of a type without infinity this is NaN
            return np.asarray(sign * math.inf).astype(dtype)[()]
    return np.asarray(sign * float(value)).astype(dtype)[()]


def total(addends: Sequence[float], dtype: Any) -> Any:
    """Add up exactly and round once; the sum is -0 only if all addends are."""
    if not all(map(math.isfinite, addends)):
        with np.errstate(invalid="ignore"):
            return np.sum([x for x in addends if not math.isfinite(x)]).astype(dtype)
    if addends and all(x == 0 and math.copysign(1, x) < 0 for x in addends):
        return np.asarray(-0.0).astype(dtype)[()]
    return nearest(sum(map(Fraction, addends), Fraction(0)), dtype)


def dot(lhs: Sequence[float], rhs: Sequence[float], dtype: Any) -> Any:
    """The sum of products from +0 on: no product is rounded, a zero is +0."""
    pairs = list(zip(lhs, rhs, strict=True))
    if not all(math.isfinite(a) and math.isfinite(b) for a, b in pairs):
        with np.errstate(all="ignore"):
            special = [
                np.float64(a) * np.float64(b)
                for a, b in pairs
                if not (math.isfinite(a) and math.isfinite(b))
            ]
            return np.sum(special).astype(dtype)
    return nearest(sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0)), dtype)


def by_part(function: Callable[..., Any], *rows: Array) -> Any:
    """A function of rows of floats, on complex ones: their real and their imaginary parts apart."""
    dtype = rows[0].dtype
    if dtype.kind != "c":
        return function(*(row.astype(np.float64).tolist() for row in rows), dtype)
    made = np.zeros((), dtype)
    part = made.real.dtype
    made.real, made.imag = _parts(function, rows, part)
    return made[()]


def _parts(function: Callable[..., Any], rows: Sequence[Array], part: Any) -> tuple[Any, Any]:
    if len(rows) == 1:
        return tuple(function(p.tolist(), part) for p in (rows[0].real, rows[0].imag))
    (a, b), (c, d) = ((row.real.tolist(), row.imag.tolist()) for row in rows)
    minus = [-x for x in d]
    return function([*a, *b], [*c, *minus], part), function([*a, *b], [*d, *c], part)


# ---- the addends ----


def addends(dtype: Any, length: int, seed: int) -> Array:
    """One row of each kind, and then of some kinds a second one."""
    if dtype.kind == "c":
        part = np.zeros((), dtype).real.dtype
        made = np.zeros((ROWS, length), dtype)
        made.real, made.imag = addends(part, length, seed), addends(part, length, seed + 1)[::-1]
        return made
    rng = np.random.default_rng(seed)
    kinds = (_cancelling, _wide, _half_way, _special, _zeros, _at_the_end, _cancelling, _half_way)
    rows = [_placed(rng, kind(rng, ml_dtypes.finfo(dtype), length), length) for kind in kinds]
    with np.errstate(all="ignore"):
        return np.stack(rows).astype(dtype)


def _placed(rng: np.random.Generator, few: Array, length: int) -> Array:
    """Place a few numbers in any order between zeros of both signs."""
    row = np.where(rng.integers(0, 2, length) == 1, 0.0, -0.0)
    row[rng.permutation(length)[: few.size]] = few[:length]
    return row


def _cancelling(rng: np.random.Generator, info: Any, length: int) -> Array:
    half = np.ldexp(rng.standard_normal(length // 2), rng.integers(0, info.maxexp - 2, length // 2))
    with np.errstate(all="ignore"):
        half = half.astype(info.dtype).astype(np.float64)  # so that it does cancel
    rest = [float(info.smallest_subnormal)] * (length % 2)
    return np.concatenate([half, -half, rest])


def _wide(rng: np.random.Generator, info: Any, length: int) -> Array:
    exponents = rng.integers(int(info.minexp) - int(info.nmant), int(info.maxexp) - 1, length)
    return np.ldexp(rng.choice([-1.5, -1.0, 1.0, 1.25], length), exponents)


def _half_way(rng: np.random.Generator, info: Any, length: int) -> Array:
    """1 or its neighbour, half of its last bit, and the least there is, more or less or neither."""
    one = 1.0 + rng.integers(0, 2) * float(info.eps)
    little = rng.integers(-1, 2) * float(info.smallest_subnormal)
    return rng.choice([-1.0, 1.0]) * np.array([one, float(info.eps) / 2, little])


def _special(rng: np.random.Generator, info: Any, length: int) -> Array:
    infinite = rng.choice([np.inf, -np.inf, np.nan, 1.0], 2)
    return np.concatenate([infinite, rng.standard_normal(length - 2)])


def _zeros(rng: np.random.Generator, info: Any, length: int) -> Array:
    return np.full(length, -0.0)


def _at_the_end(rng: np.random.Generator, info: Any, length: int) -> Array:
    """The largest numbers, whose partial sums overflow where the sum does not."""
    most = float(info.max)
    return np.array([most, most, -most, -most, -most, most, most])[:length]


# ---- the instructions ----


class Case(NamedTuple):
    text: str
    arguments: tuple[Array, ...]
    expected: Array


_ADD = "add { a = T[] parameter(0)\n b = T[] parameter(1)\n ROOT r = T[] add(a, b) }\n"


def program(name: str, body: str, computations: str = _ADD) -> str:
    """A text in which ``T`` is the element type."""
    text = f"HloModule m\n{computations}ENTRY e {{\n{body}\n}}"
    return text.replace("T[", f"{name}[")


def sums(x: Array, init: Array) -> Array:
    """Add up each row and its own init exactly."""
    rows = [np.concatenate([init[n : n + 1], row]) for n, row in enumerate(x)]
    return np.stack([by_part(total, row) for row in rows])


def reductions(name: str, x: Array) -> list[Case]:
    rows, length = x.shape
    zero = np.asarray(-0.0).astype(x.dtype)
    expected = sums(x, np.broadcast_to(zero, rows))
    split = x.reshape(rows, -1, length if length % 5 else 5).swapaxes(0, 1)
    given = {"{1}": x, "{0}": x.T, "{0,2}": split}
    return [
        Case(
            program(
                name,
                f"x = T[{_dims(array)}] parameter(0)\ni = T[] parameter(1)\n"
                f"ROOT r = T[{rows}] reduce(x, i), dimensions={dimensions}, to_apply=add",
            ),
            (np.ascontiguousarray(array), zero),
            expected,
        )
        for dimensions, array in given.items()
    ]


def _dims(array: Array) -> str:
    return ",".join(map(str, array.shape))


def windows(name: str, x: Array) -> list[Case]:
    """All of a row, pieces of it, and all that is before an element."""
    rows, length = x.shape
    init = np.asarray(-0.0).astype(x.dtype)
    shapes = {
        f"1x{length}": (1, [slice(0, length)]),
        f"1x5 stride=1x{2 if length < 50 else 31}": (
            (length - 5) // (2 if length < 50 else 31) + 1,
            [slice(s, s + 5) for s in range(0, length - 4, 2 if length < 50 else 31)],
        ),
        f"1x{length} pad=0_0x{length - 1}_0": (length, [slice(0, n + 1) for n in range(length)]),
    }
    cases = []
    for size, (count, pieces) in shapes.items():
        body = (
            f"x = T[{rows},{length}] parameter(0)\ni = T[] parameter(1)\nROOT r = T[{rows},{count}]"
            f" reduce-window(x, i), window={{size={size}}}, to_apply=add"
        )
        inits = np.broadcast_to(init, rows)
        columns = [sums(x[:, piece], inits) for piece in pieces]
        cases.append(Case(program(name, body), (x, init), np.stack(columns, 1)))
    return cases


def products(name: str, x: Array) -> list[Case]:
    """Rows with rows one by one, each with each, with one column, and as a convolution."""
    rows, length = x.shape
    y = np.ascontiguousarray(x[[6, 1, 2, 0, 4, 3, 5, 7]])
    each = np.stack([np.stack([by_part(dot, a, b) for b in y]) for a in x])
    head = f"x = T[{rows},{length}] parameter(0)\n"
    same = f"{head}y = T[{rows},{length}] parameter(1)\n"
    bodies = {
        f"{same}ROOT r = T[{rows}] dot(x, y), lhs_batch_dims={{0}}, rhs_batch_dims={{0}},"
        " lhs_contracting_dims={1}, rhs_contracting_dims={1}": (y, np.diagonal(each)),
        f"{same}ROOT r = T[{rows},{rows}] dot(x, y), lhs_contracting_dims={{1}},"
        " rhs_contracting_dims={1}": (y, each),
        f"{head}y = T[{length},{rows}] parameter(1)\nROOT r = T[{rows},{rows}] dot(x, y),"
        " lhs_contracting_dims={1}, rhs_contracting_dims={0}": (y.T, each),
        f"{head}y = T[{length}] parameter(1)\nROOT r = T[{rows}] dot(x, y),"
        " lhs_contracting_dims={1}, rhs_contracting_dims={0}": (y[2], each[:, 2]),
        f"{head}y = T[{rows},{length}] parameter(1)\nROOT r = T[{rows},{rows},1] convolution(w, y),"
        f" window={{size={length}}}, dim_labels=b0f_o0i->bf0": (y, each[..., None]),
    }
    cases = []
    for body, (other, expected) in bodies.items():
        if "convolution" in body:
            body = body.replace(
                "ROOT",
                f"w = T[{rows},{length},1] reshape(x)\nv = T[{rows},{length},1] reshape(y)\nROOT",
            )
            body = body.replace("(w, y)", "(w, v)")
        text = program(name, body, "")
        cases.append(Case(text, (x, np.ascontiguousarray(other)), np.ascontiguousarray(expected)))
    return cases


def updates(name: str, x: Array) -> list[Case]:
    """Every element of a row is added to one element of the result."""
    rows, length = x.shape
    init = np.ascontiguousarray(x[[3, 0, 1, 2, 4, 6, 5, 7], 0])
    expected = sums(x, init)
    order = np.random.default_rng(1).permutation(rows * length)
    index = np.repeat(np.arange(rows, dtype=np.int32), length)[order]
    scattered = program(
        name,
        f"x = T[{rows}] parameter(0)\ni = s32[{rows * length}] parameter(1)\n"
        f"u = T[{rows * length}] parameter(2)\nROOT r = T[{rows}] scatter(x, i, u),"
        " update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},"
        " index_vector_dim=1, to_apply=add",
    )
    # The element in the middle is the largest of every window that has it.
    operand = np.zeros((rows, 2 * length - 1), x.dtype)
    operand[:, length - 1] = 1
    zero = np.asarray(-0.0).astype(x.dtype)
    peaks = np.full(operand.shape, zero)
    peaks[:, length - 1] = sums(x, np.broadcast_to(zero, rows))
    compare = "a = T[] parameter(0)\n b = T[] parameter(1)\n ROOT r = pred[] compare(a, b)"
    selected = program(
        name,
        f"x = T[{rows},{2 * length - 1}] parameter(0)\ns = T[{rows},{length}] parameter(1)\n"
        f"i = T[] parameter(2)\nROOT r = T[{rows},{2 * length - 1}] select-and-scatter(x, s, i),"
        f" window={{size=1x{length}}}, select=ge, scatter=add",
        f"{_ADD}ge {{ {compare}, direction=GE }}\n",
    )
    cases = [Case(scattered, (init, index, np.ascontiguousarray(x.reshape(-1)[order])), expected)]
    return cases if x.dtype.kind == "c" else [*cases, Case(selected, (operand, x, zero), peaks)]


@cache
def cases(name: str) -> tuple[Case, ...]:
    made: list[Case] = []
    for number, length in enumerate(LENGTHS):
        x = addends(ELEMENT_TYPES[name].numpy, length, 10 * number)
        for family in (reductions, windows, products, updates):
            made += family(name, x)
    return tuple(made)


def assert_same(name: str, evaluate: Callable[[hlo.Module, Sequence[Any]], Any]) -> None:
    made = cases(name)
    whole = merged([hlo.parse(case.text) for case in made])
    hlo.verify(whole)
    results = evaluate(whole, [array for case in made for array in case.arguments])
    for case, result in zip(made, results, strict=True):
        found = differences(case.expected, result)
        assert not found, f"{case.text}\n{case.arguments}\n{found[0]}"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TYPES)
def test_the_interpreter(name: str) -> None:
    assert_same(name, lambda module, arrays: interp.evaluate(module, *arrays))


@pytest.mark.sampled(2)
@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("name", TYPES)
def test_c(name: str) -> None:
    assert_same(name, _by_c)


def _by_c(module: hlo.Module, arrays: Sequence[Any]) -> Any:
    (executable,) = compiled([module], thorough(os.environ))
    assert isinstance(executable, Executable), executable
    return executable(*arrays)


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_optimised_c() -> None:
    assert_same("f32", lambda module, arrays: backend_c.compile(module, numerics="exact")(*arrays))
