"""Constants of a chain of products may be multiplied first, also if that is a subnormal number."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
from hlo.values import Array
from interp.envelope.budget import UNKNOWN, XLA_CPU, Budget
from interp.envelope.enclosure import Enclosure, contains
from interp.envelope.evaluation import enclose

_X = np.linspace(20000, 65504, 64).astype(np.float16)


def enclosed(lines: str, x: Array, budget: Budget) -> Enclosure:
    kind = {np.float16: "f16", np.float32: "f32"}[x.dtype.type]
    body = lines.replace("ARRAY", f"{kind}[64]").replace("SCALAR", f"{kind}[]")
    module = hlo.parse(f"HloModule m\nENTRY e {{\n x = {kind}[64] parameter(0)\n{body}\n}}\n")
    found = enclose(module, x, peer=budget).result
    assert isinstance(found, Enclosure)
    return found


def chained(opcode: str, one: float, other: float) -> str:
    return (
        f" c = SCALAR constant({one!r})\n d = SCALAR constant({other!r})\n"
        f" cs = ARRAY broadcast(c), dimensions={{}}\n ds = ARRAY broadcast(d), dimensions={{}}\n"
        f" p = ARRAY {opcode}(x, cs)\n ROOT r = ARRAY {opcode}(p, ds)"
    )


@pytest.mark.parametrize("budget", [XLA_CPU, UNKNOWN], ids=lambda budget: budget.name)
@pytest.mark.parametrize(("one", "other"), [(0.01, 0.00333), (0.0078, 0.005), (0.001, 0.003)])
def test_one_product_with_a_subnormal_constant_is_legal(
    one: float, other: float, budget: Budget
) -> None:
    c, d = np.float16(one), np.float16(other)
    both = np.float16(c * d)
    assert 0 < both < np.finfo(np.float16).smallest_normal
    legal = enclosed(chained("multiply", float(c), float(d)), _X, budget)
    assert contains(legal, _X * both).all()
    assert contains(legal, (_X * c) * d).all()


def test_quotients_are_products_with_reciprocals() -> None:
    both = np.float16(np.float16(1 / 300) * np.float16(1 / 300))
    legal = enclosed(chained("divide", 300.0, 300.0), _X, XLA_CPU)
    assert contains(legal, _X * both).all()


def test_wider_than_that_is_outside() -> None:
    """By three units of the constant."""
    c, d = np.float16(0.01), np.float16(0.00333)
    legal = enclosed(chained("multiply", float(c), float(d)), _X, XLA_CPU)
    for both in np.float16(c * d) + np.float16(2**-24) * np.array([-3, 3], np.float16):
        assert not contains(legal, _X * both).any()


def test_of_f32_a_flushed_constant_is_outside() -> None:
    x = np.full(64, 1e35, np.float32)
    legal = enclosed(chained("multiply", 1e-20, 1e-20), x, XLA_CPU)
    assert not contains(legal, np.zeros(64, np.float32)).any()


def test_normal_constants_change_nothing() -> None:
    """But for a product of them that is subnormal."""
    legal = enclosed(chained("multiply", 0.5, 0.25), _X, XLA_CPU)
    width = (legal.high.astype(float) - legal.low) / _X / 0.125
    assert width.max() < 2**-8


def test_a_number_that_may_have_overflowed_is_widened_too() -> None:
    """exp(11.09) = 65513, which is legally rounded to 65504 and to infinity."""
    c, d = np.float16(0.001), np.float16(0.0033)
    lines = chained("multiply", float(c), float(d)).replace("(x, cs)", "(e, cs)")
    x = np.full(64, 11.09, np.float16)
    legal = enclosed(" e = ARRAY exponential(x)\n" + lines, x, XLA_CPU)
    assert np.isinf(legal.high).all()
    assert contains(legal, np.full(64, np.float16(65504) * np.float16(c * d))).all()


def test_infinity_times_a_constant_that_vanishes_is_nan() -> None:
    infinite = np.full(64, np.inf, np.float16)
    legal = enclosed(chained("multiply", 1e-4, 1e-4), infinite, XLA_CPU)
    for value in (np.inf, np.nan):
        assert contains(legal, np.full(64, value, np.float16)).all()
    kept = enclosed(chained("multiply", 0.01, 0.00333), infinite, XLA_CPU)
    assert not contains(kept, np.full(64, np.nan, np.float16)).any()
