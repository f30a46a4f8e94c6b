"""LAPACK as older JAX called it: programs and results recorded from JAX 0.4.20 in
untyped_lapack.json, which record_untyped_lapack.py writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from hlo.errors import Unsupported
from hlo.values import arrays_of
from interp.envelope.budget import XLA_CPU
from interp.envelope.enclosure import contains
from interp.envelope.evaluation import enclose

pytest.importorskip("scipy")
ROWS = json.loads(Path(__file__).with_name("untyped_lapack.json").read_text())


def array(row: dict[str, Any]) -> np.ndarray:
    real, *imaginary = (np.array(part) for part in row["numbers"])
    whole = real + 1j * imaginary[0] if imaginary else real
    return whole.astype(row["type"]).reshape(row["dims"])


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_as_recorded(row: dict[str, Any]) -> None:
    module = hlo.parse("\n".join(row["hlo"]))
    hlo.verify(module)
    value = interp.evaluate(module, *map(array, row["arguments"]))
    results = list(arrays_of(value))
    assert len(results) == len(row["results"])
    for ours, recorded in zip(results, map(array, row["results"]), strict=True):
        theirs = recorded
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        if row["name"].startswith(("svd", "eig")):  # vectors of any sign
            ours, theirs = np.abs(ours), np.abs(theirs)
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-4)


def test_a_factor_of_the_right_hand_side() -> None:
    """alpha, which JAX leaves at 1: 2x = 3 · 4."""
    text = """ENTRY e {
      one = s32[] constant(1)
      none = s32[] constant(0)
      alpha = f32[] constant(3)
      a = f32[1,1] constant({{2}})
      b = f32[1,1] constant({{4}})
      ROOT x = f32[1,1] custom-call(one, one, none, none, one, one, one, alpha, a, b),
        custom_call_target="blas_strsm"
    }"""
    assert interp.evaluate(hlo.parse(text)) == [[6]]


@pytest.mark.parametrize("alpha", [1, 3])
def test_a_factor_that_is_typed(alpha: int) -> None:
    """Up to JAX 0.4.38 it is a third operand: 2x = 3 · 4, by interpreter, C and envelope."""
    text = f"""ENTRY e {{
      a = f32[1,1] parameter(0)
      b = f32[1,1] constant({{{{4}}}})
      alpha = f32[] constant({alpha})
      ROOT x = f32[1,1] custom-call(a, b, alpha), custom_call_target="lapack_strsm_ffi",
        backend_config="diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8"
    }}"""
    module, a = hlo.parse(text), np.full((1, 1), 2, np.float32)
    assert interp.evaluate(module, a) == [[2 * alpha]]
    legal = enclose(module, a, peer=XLA_CPU).result
    assert contains(legal, np.full((1, 1), 2 * alpha, np.float32)).all()
    if has_c_compiler():
        assert backend_c.compile(module, numerics="exact")(a) == [[2 * alpha]]


@pytest.mark.parametrize("target", ["lapack_sgetrf", "lapack_spotrf"])
def test_too_few_operands_are_refused(target: str) -> None:
    text = f'ENTRY e {{ x = f32[2,2] parameter(0) ROOT r = f32[2,2] custom-call(x), \
      custom_call_target="{target}" }}'
    with pytest.raises(Unsupported, match="other operands than JAX"):
        interp.evaluate(hlo.parse(text), np.eye(2, dtype=np.float32))


@pytest.mark.parametrize("change", ["f32 first", "transposed 3", "array first", "one result"])
def test_operands_of_another_form_are_refused(change: str) -> None:
    """Sizes and flags are scalars of integers, and there are as many results as JAX declared."""
    first = {"f32 first": "f32[] constant(1)", "array first": "s32[2] constant({1, 2})"}
    lines = [
        f"one = {first.get(change, 's32[] constant(1)')}",
        "i = s32[] constant(1)",
        f"t = s32[] constant({3 if change == 'transposed 3' else 0})",
        "alpha = f32[] constant(1)",
        "a = f32[2,2] constant({{1, 0}, {0, 1}})",
    ]
    call = 'custom-call(one, i, t, i, i, i, i, alpha, a, a), custom_call_target="blas_strsm"'
    if change == "one result":
        call = 'custom-call(one, i, i, a), custom_call_target="lapack_spotrf"'
    text = "ENTRY e {\n" + "\n".join(lines) + f"\nROOT r = f32[2,2] {call}\n}}"
    with pytest.raises(Unsupported, match="other operands|does not give"):
        interp.evaluate(hlo.parse(text))
    with pytest.raises(Unsupported, match="other operands|does not give|transposition"):
        enclose(hlo.parse(text), peer=XLA_CPU)
