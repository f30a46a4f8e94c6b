"""The fast sequences against the exact ones; every f32 is the proofs' business."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from conftest import has_c_compiler
from hypothesis import given
from hypothesis import strategies as st

import backend_c
import hlo
from backend_c.ir.settings import Numerics
from backend_c.render.dialect import OPENMP
from backend_c.render.elementary_functions import definitions
from backend_c.render.operations import render_operation
from hlo.elementary.fast import BOUNDED, FAST_FUNCTIONS, SINGLE, evaluate_fast
from hlo.elementary.fast.trigonometric import NEAR
from hlo.errors import Unsupported
from hlo.types import BF16, ELEMENT_TYPES, F32, F64
from hlo.values import Array
from interp.exact.elementary_machine import evaluated
from selftest.prove import fit_fast
from selftest.prove.fast import exact_name, largest, pairs, ulps, worst_of_pairs
from selftest.prove.float_machine import NumpyFloatMachine, evaluated_fast

UNARY = [name for name, function in FAST_FUNCTIONS.items() if function.arity == 1]
BINARY = [name for name, function in FAST_FUNCTIONS.items() if function.arity == 2]
# The result of every f32 is within one unit: here of some of every exponent, and around where
# sequences change their formula or results their kind.
_EDGES = (0.0, 2.0**-149, 2.0**-126, 2.0**-25, 0.83, 0.9, 0.9375, 1.0, 2.0**0.5, 4.0, 10.0, 17.33,
          18.0, 87.3, 88.7228, 88.72284, 103.9721, 104.0, 1608.0, 2.0**127, np.inf)  # fmt: skip


def _operands() -> Array:
    generator = np.random.default_rng(0)
    exponents = np.repeat(np.arange(255, dtype=np.uint32), 40) << 23
    words = exponents + generator.integers(0, 2**23, exponents.size, dtype=np.uint32)
    edges = np.float32(_EDGES).view(np.uint32).astype(np.int64)[:, None] + np.arange(-20, 21)
    edges = np.clip(edges, 0, 0x7F800000).astype(np.uint32).reshape(-1)
    positive = np.concatenate([words, edges, [0x7F800001, 0x7FC00000, 0x7FFFFFFF]])
    words = np.concatenate([positive, positive | 0x80000000]).astype(np.uint32)
    return words.view(np.float32)


@pytest.mark.parametrize("once", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("name", UNARY)
def test_results_are_within_one_unit_in_the_last_place(name: str, once: bool) -> None:
    x = _operands()
    with np.errstate(invalid="ignore"):  # of signalling NaNs
        x = x[~(np.abs(x) > largest(name))]
        exact = evaluated(exact_name(name), x.astype(np.float64))
    found = ulps(evaluated_fast(name, x, once=once), exact)
    assert np.max(found) <= 1.0, x[np.argmax(found)]


@pytest.mark.parametrize("once", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("name", BINARY)
def test_results_of_pairs_are_within_one_unit_in_the_last_place(name: str, once: bool) -> None:
    worst = worst_of_pairs(name, *pairs(name, 4000), once=once)
    assert worst.error <= 1.0, worst


def test_errors_are_counted_in_units_of_the_exact_result() -> None:
    exact = np.array([1.0, 1.0, 2.0**-149, 2.0**128, -0.0, np.nan, 1.0])
    found = np.float32([1 + 2.0**-23, 1 - 2.0**-24, 0.0, np.inf, 0.0, np.nan, np.nan])
    assert ulps(found, exact).tolist() == [1.0, 0.5, 1.0, 0.0, np.inf, 0.0, np.inf]


@given(*[st.floats(width=32)] * 3)
def test_fused_operations_of_numpy_round_once(a: float, b: float, c: float) -> None:
    with np.errstate(all="ignore"):
        found = float(NumpyFloatMachine(True).fused(np.float32(a), np.float32(b), np.float32(c)))
    if np.isfinite([a, b, c]).all() and np.isfinite(found):
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        word = np.float32(found)
        for neighbour in (np.nextafter(word, np.float32(-np.inf)), np.nextafter(word, np.inf)):
            if np.isfinite(neighbour):
                other = abs(Fraction(float(neighbour)) - exact)
                assert abs(Fraction(found) - exact) <= other


def test_unknown_functions_are_refused() -> None:
    with pytest.raises(Unsupported, match="no fast sequence"):
        evaluate_fast("gamma", NumpyFloatMachine(True), np.float32([1.0]))


@pytest.mark.parametrize("name", fit_fast.FITS)
def test_coefficients_are_those_of_the_fit(name: str) -> None:
    assert fit_fast.coefficients(fit_fast.FITS[name])[0] == [
        float(np.float32(c)) for c in fit_fast.IN_CODE[name]
    ]


def test_fast_numerics_render_f32_functions() -> None:
    fast, f8 = Numerics.FAST, ELEMENT_TYPES["f8e5m2"]
    assert render_operation("tanh", ["x"], [F32], F32, fast)[0] == "hlo_tanh_fast(x)"
    # What is computed of bf16 stays in f32; of f8 it is rounded each time.
    assert render_operation("tanh", ["x"], [BF16], BF16, fast)[0] == "hlo_tanh_fast(x)"
    assert render_operation("add", ["x", "y"], [BF16, BF16], BF16, fast)[0] == "x + y"
    assert render_operation("add", ["x", "y"], [BF16, BF16], BF16)[0] == "hlo_round_bf16(x + y)"
    assert (
        render_operation("tanh", ["x"], [f8], f8, fast)[0] == "hlo_round_f8e5m2(hlo_tanh_fast(x))"
    )
    assert render_operation("tanh", ["x"], [F64], F64, fast)[0] == "hlo_tanh_f64_fast(x)"
    assert render_operation("tanh", ["x"], [F32], F32)[0] == "(float)hlo_tanh((double)x)"


@pytest.mark.parametrize("name", sorted(FAST_FUNCTIONS.keys() - {*SINGLE.values()}))
def test_functions_call_only_what_dissolves_in_a_loop(name: str) -> None:
    text = definitions(f"hlo_{name}_fast(", OPENMP)
    called = set(re.findall(r"\b(\w+)\(", text)) - {f"hlo_{name}_fast"}
    assert called <= {
        "hlo_fused_f32", "hlo_residual_f32", "hlo_abs_f32", "hlo_sqrt_f32", "hlo_bits_f32",
        "hlo_f32_from_bits", "hlo_bits_f64",
    }  # fmt: skip


_MODULE = """HloModule m
ENTRY main {{
  x = {0}[{1}] parameter(0)
  ROOT r = {0}[{1}] {2}(x)
}}
"""


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("name", sorted({*UNARY} - {b.name for b in BOUNDED} - {*SINGLE.values()}))
def test_compiled_functions_give_the_bits_of_the_sequence(name: str) -> None:
    x = _operands()
    module = hlo.parse(_MODULE.format("f32", x.size, name.replace("_", "-")))
    found = np.asarray(backend_c.compile(module, numerics="fast")(x))
    # Of all operands, or of those in a block of 1024 that has no larger one.
    small = [f"{name}_near"] if f"{name}_near" in FAST_FUNCTIONS else []
    whole, *near = (
        [evaluated_fast(n, x, once=once).view(np.uint32) for once in (True, False)]
        for n in (name, *small)
    )
    beyond = np.repeat([~(np.abs(x[n : n + 1024]) <= NEAR).all() for n in range(0, x.size, 1024)],
                       1024)[: x.size]  # fmt: skip
    words = [np.where(beyond, *both) for both in zip(whole, *near, strict=True)] if near else whole
    number = ~np.isnan(found)
    assert any(np.array_equal(found.view(np.uint32)[number], word[number]) for word in words)
