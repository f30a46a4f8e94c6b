"""Check the budgets of GPUs and TPUs for matrix products: fewer bits of factors, unless asked."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import hlo
import interp
from hlo.values import Array
from interp.envelope.budget import XLA_CPU, XLA_GPU, XLA_TPU, Budget
from interp.envelope.enclosure import contains
from interp.envelope.evaluation import enclose
from interp.envelope.judgement import Judge
from interp.envelope.verdict import OUTSIDE

PROGRAM = """HloModule product

ENTRY e {{
  a = {type}[8,{k}] parameter(0)
  b = {type}[{k},8] parameter(1)
  ROOT c = {type}[8,8] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}{more}
}}
"""
K = 64


def rounded(array: Array, bits: int) -> Array:
    """Round to so many significant bits, ties to even: as tensor cores (11) and bf16 (8) do."""
    if bits == 8:
        return array.astype(ml_dtypes.bfloat16).astype(np.float32)
    if bits == 24:
        return array
    whole = array.view(np.uint32)
    low = np.uint32(24 - bits)
    even = (whole >> low) & np.uint32(1)
    added = whole + (np.uint32(1) << (low - np.uint32(1))) - np.uint32(1) + even
    return (added >> low << low).view(np.float32)


def outside(peer: Budget, bits: int, more: str = "", element_type: str = "f32") -> int:
    """The elements of a product of rounded factors that are outside what a peer may do."""
    module = hlo.parse(PROGRAM.format(type=element_type, k=K, more=more))
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((8, K), np.float32), rng.standard_normal((K, 8), np.float32)
    result = rounded(a, bits) @ rounded(b, bits)
    if element_type == "f64":
        a, b, result = a.astype(float), b.astype(float), result.astype(float)
    exact = interp.evaluate(module, a, b)
    found = Judge(module, (a, b), [("", exact)], peer=peer).judged([result], lambda module: None)
    return found.counts[OUTSIDE]


@pytest.mark.parametrize(("peer", "bits"), [(XLA_GPU, 11), (XLA_TPU, 8), (XLA_TPU, 11)])
def test_fewer_bits_of_factors_are_legal_there_alone(peer: Budget, bits: int) -> None:
    assert not outside(peer, bits)
    assert outside(XLA_CPU, bits) > 32
    assert not outside(XLA_CPU, 24)


def test_a_gpu_keeps_more_than_bf16() -> None:
    assert outside(XLA_GPU, 8) > 0


@pytest.mark.parametrize("peer", [XLA_GPU, XLA_TPU])
def test_the_highest_precision_is_asked_for(peer: Budget) -> None:
    assert outside(peer, 11, ", operand_precision={highest,highest}") > 32
    assert not outside(peer, 24, ", operand_precision={highest,highest}")


def test_other_types_keep_all_bits() -> None:
    assert outside(XLA_GPU, 11, element_type="f64") > 32


def test_an_algorithm_says_what_is_rounded() -> None:
    assert outside(XLA_GPU, 11, ", algorithm=dot_f32_f32_f32") > 32
    assert not outside(XLA_CPU, 11, ", algorithm=dot_tf32_tf32_f32")


def _legal(peer: Budget, algorithm: str, pairs: list[tuple[float, float]], actual: float) -> bool:
    """Test whether a sum of products, of f32, may be this number."""
    more = f", algorithm={algorithm}" if algorithm else ""
    text = PROGRAM.replace("[8,{k}]", "[1,{k}]").replace("[{k},8]", "[{k},1]")
    text = text.replace("[8,8]", "[1,1]").format(type="f32", k=len(pairs), more=more)
    a, b = np.array(pairs, np.float32).T
    found = enclose(hlo.parse(text), a[None], b[:, None], peer=peer).result
    return bool(contains(found, np.full((1, 1), actual, np.float32)).all())


def _half(number: float) -> float:
    return float(np.float16(number))


_ROUNDED = {"dot_bf16_bf16_f32_x3": 2.0**-14, "dot_bf16_bf16_f32_x6": 2.0**-21}


@pytest.mark.parametrize("algorithm", _ROUNDED)
def test_an_algorithm_of_several_passes_loses_the_product_of_what_is_left(algorithm: str) -> None:
    part = _ROUNDED[algorithm]
    for more, is_legal in ((1 + part, True), (1 + 2 * part, True), (1 + 16 * part, False)):
        assert _legal(XLA_CPU, algorithm, [(1.1, 1.0)], float(np.float32(1.1)) * more) == is_legal
    assert not _legal(XLA_CPU, "dot_f32_f32_f32", [(1.1, 1.0)], 1.1 * (1 + part))


def test_factors_of_f16_have_its_range() -> None:
    for algorithm, is_legal in (("dot_f16_f16_f32", True), ("dot_tf32_tf32_f32", False)):
        assert _legal(XLA_CPU, algorithm, [(1e-9, 1.0)], 0.0) == is_legal
        assert _legal(XLA_CPU, algorithm, [(1e-7, 1.0)], _half(1e-7)) == is_legal
        assert _legal(XLA_CPU, algorithm, [(1e6, 1.0)], np.inf) == is_legal
        assert _legal(XLA_CPU, algorithm, [(np.inf, 1e-9)], np.nan) == is_legal
    assert not _legal(XLA_CPU, "dot_f16_f16_f32", [(1e4, 1.0)], np.inf)


def test_sums_are_as_exact_as_the_algorithm_has_them() -> None:
    ones = [(1.0, 1.0)] * 4100
    for algorithm, actual in (("dot_f16_f16_f16", 2048.0), ("dot_bf16_bf16_bf16", 256.0)):
        assert _legal(XLA_CPU, algorithm, ones, actual)
        assert not _legal(XLA_CPU, algorithm.rpartition("_")[0] + "_f32", ones, actual)
    large = [(300.0, 200.0)] * 2
    assert _legal(XLA_CPU, "dot_f16_f16_f16", large, np.inf)
    assert not _legal(XLA_CPU, "dot_f16_f16_f32", large, np.inf)


@pytest.mark.parametrize("peer", [XLA_GPU, XLA_TPU])
def test_a_factor_may_be_rounded_to_infinity(peer: Budget) -> None:
    largest = float(np.finfo(np.float32).max)
    assert _legal(peer, "", [(largest, 0.25)], np.inf)
    assert not _legal(XLA_CPU, "", [(largest, 0.25)], np.inf)
    assert not _legal(peer, "", [(largest / 2, 0.25)], np.inf)


def test_without_an_algorithm_a_compiler_does_what_it_may() -> None:
    assert not outside(XLA_GPU, 11, ", algorithm=dot_unset")
