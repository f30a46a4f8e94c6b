"""Check that a rewritten chain need not continue from the value that a peer shows inside of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hlo
from hlo.types import BF16, F16, F32, ElementType
from hlo.values import arrays_of
from interp.envelope import budget, elementwise_chains
from interp.envelope.budget import XLA_CPU
from interp.envelope.enclosure import contains, finfo, point
from interp.envelope.peer_values.followed import followed

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


@pytest.mark.parametrize("element_type", (BF16, F16, F32), ids=str)
def test_a_shown_exponential_may_be_of_the_number_beside(element_type: ElementType) -> None:
    """exp(x) for x rounded once more is near to what is shown, also in bf16, where it is off by a
    third at the ends; and what is shown as zero is zero but for the least numbers."""
    info = finfo(element_type.numpy)
    eps, tiny = float(info.eps), float(info.smallest_normal)
    ends = np.log([tiny * 2, float(info.max) / 2])
    x = np.append(np.linspace(*ends, 500), [-np.inf, -1000.0]).astype(element_type.numpy)

    def exponential(factor: float) -> np.ndarray:
        return np.exp(x.astype(np.float64) * factor)

    shown = exponential(1.0).astype(element_type.numpy)
    with budget.using(XLA_CPU), np.errstate(all="ignore"):
        legal = elementwise_chains.in_effect("exponential", [point(x)], point(shown), point(shown))
        for factor in (1 - eps / 2, 1 + eps / 2):
            assert contains(legal, exponential(factor).astype(element_type.numpy)).all()
    assert (legal.high[-2:] < info.smallest_normal).all()
    widest = np.exp(1.1 * eps * np.abs(x[:-2].astype(np.float64))) * (1 + 16 * eps)
    assert (legal.high[:-2].astype(np.float64) <= shown[:-2].astype(np.float64) * widest).all()


def test_a_quotient_by_a_complex_power_need_not_use_the_shown_power() -> None:
    """x / x^x may be x x^-x, with an error of its own; what is off by more stays outside."""
    module = hlo.parse("""HloModule m
ENTRY main {
  x = c64[] parameter(0)
  p = c64[] power(x, x)
  ROOT r = c64[] divide(x, p)
}
""")
    x = np.complex64(1 - 7j)
    power = np.complex128(x) ** np.complex128(x)
    shown = {"p": np.asarray(power * (1 + 5e-5), np.complex64)}
    found, outside = followed(module, shown, x, peer=XLA_CPU)
    assert not outside
    assert contains(found.result, np.asarray(x / power, np.complex64)).all()
    assert not contains(found.result, np.asarray(x / power * 1.01, np.complex64)).any()
