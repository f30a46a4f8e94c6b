"""What is shown of a value inside of a chain is not what a rewritten chain goes on with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hlo
from hlo.values import arrays_of
from interp.envelope.budget import XLA_CPU
from interp.envelope.enclosure import contains
from interp.envelope.peer_values import followed

Function = Callable[[np.ndarray], np.ndarray]
_TEXT = """HloModule m
ENTRY e {{
  x = {type}[500] parameter(0)
  y = {type}[500] parameter(1)
  a = {type}[500] {inner}(x)
  b = {type}[500] {inner}(y)
  ROOT r = {type}[500] {outer}(a, b)
}}
"""
# What each chain is over the real numbers: a function of one rounded operation.
_CHAINS: dict[tuple[str, str], tuple[np.ufunc, Function]] = {
    ("exponential", "divide"): (np.subtract, np.exp),
    ("exponential", "multiply"): (np.add, np.exp),
    ("log", "subtract"): (np.divide, np.log),
    ("log", "add"): (np.multiply, np.log),
}
_INNER: dict[str, Function] = {"exponential": np.exp, "log": np.log}


@pytest.mark.parametrize("type_name", ["f16", "f32"])
@pytest.mark.parametrize("chain", _CHAINS, ids="-".join)
def test_chains_rewritten_between_anchors_are_legal(chain: tuple[str, str], type_name: str) -> None:
    dtype = {"f16": np.float16, "f32": np.float32}[type_name]
    x, y = (np.random.default_rng(0).uniform(0.1, 5, (2, 500))).astype(dtype)
    if chain == ("exponential", "divide"):
        x = -x
    module = hlo.parse(_TEXT.format(type=type_name, inner=chain[0], outer=chain[1]))

    def rounded(function: Function, operand: np.ndarray) -> np.ndarray:
        return function(operand.astype(np.float64)).astype(dtype)

    shown = {name: rounded(_INNER[chain[0]], one) for name, one in (("a", x), ("b", y))}
    joined, function = _CHAINS[chain]
    rewritten = rounded(function, joined(x, y, dtype=dtype))
    enclosed, wrong = followed(module, shown, x, y, peer=XLA_CPU)
    assert not wrong
    (legal,) = arrays_of(enclosed.result)
    assert contains(legal, rewritten).all()
