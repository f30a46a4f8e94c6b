"""Check the budgets of GPUs and TPUs for matrix products: fewer bits of factors, unless asked."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import hlo
import interp
from hlo.values import Array
from interp.envelope.budget import XLA_CPU, XLA_GPU, XLA_TPU, Budget
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
