"""On a branch cut either side is legal: the language does not say which."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from interp.envelope.budget import XLA_CPU
from interp.envelope.enclosure import Enclosure, contains
from interp.envelope.evaluation import enclose

TEXT = "HloModule m\nENTRY e {{ x = {type}[3] parameter(0)\n ROOT r = {type}[3] {op} }}"
OPS = (
    *("sqrt(x)", "rsqrt(x)", "log(x)", "log-plus-one(x)"),
    *("acos(x)", "acosh(x)", "asin(x)", "atanh(x)"),
)


@pytest.mark.parametrize("type_name", ["c64", "c128"])
@pytest.mark.parametrize("op", OPS)
def test_either_side_is_legal(op: str, type_name: str) -> None:
    dtype = hlo.types.ELEMENT_TYPES[type_name].numpy
    # On the cut; beside it; away from it.
    x = np.array([complex(-256, -0.0), complex(-256, -1e-3), complex(2, 1)], dtype)
    module = hlo.parse(TEXT.format(type=type_name, op=op))
    exact = np.asarray(interp.evaluate(module, x))
    legal = enclose(module, x, peer=XLA_CPU).result
    assert contains(legal, exact).all()
    assert contains(legal, np.conj(exact)).tolist() == [True, False, False]


@pytest.mark.parametrize("number", [0.5, -0.25])
def test_the_cut_of_acosh_goes_to_one(number: float) -> None:
    module = hlo.parse(TEXT.format(type="c64", op="acosh(x)"))
    x = np.full(3, complex(number, -0.0), np.complex64)
    legal = enclose(module, x, peer=XLA_CPU).result
    for side in (x, x.conj()):
        assert contains(legal, np.asarray(interp.evaluate(module, side))).all()


def test_the_cut_of_asinh_is_imaginary() -> None:
    module = hlo.parse(TEXT.format(type="c64", op="asinh(x)"))
    x = np.array([complex(-0.0, 3), complex(-1e-3, 3), complex(1, 2)], np.complex64)
    legal = enclose(module, x, peer=XLA_CPU).result
    assert contains(legal, np.asarray(interp.evaluate(module, x))).all()
    other = np.asarray(interp.evaluate(module, np.array([complex(0, 3)] * 3, np.complex64)))
    assert contains(legal, other).tolist() == [True, False, False]


@pytest.mark.parametrize("exponent", [complex(0.5, 0), complex(0.3, -0.2)])
def test_the_cut_of_power_is_that_of_its_base(exponent: complex) -> None:
    text = "HloModule m\nENTRY e { x = c64[2] parameter(0)\n y = c64[2] parameter(1)\n"
    module = hlo.parse(text + " ROOT r = c64[2] power(x, y) }")
    x, y = np.array([complex(-3, -0.0), complex(-3, -1)], np.complex64), np.full(2, exponent)
    y = y.astype(np.complex64)
    exact, other = (np.asarray(interp.evaluate(module, one, y)) for one in (x, x.conj()))
    legal = enclose(module, x, y, peer=XLA_CPU).result
    assert contains(legal, exact).all()
    assert contains(legal, other).tolist() == [True, False]


def test_the_cut_of_atan2() -> None:
    text = "HloModule m\nENTRY e { y = c128[1] parameter(0)\n x = c128[1] parameter(1)\n"
    module = hlo.parse(text + " ROOT r = c128[1] atan2(y, x) }")
    y, x = np.array([complex(-0.0, 0)]), np.array([complex(-2, 0)])
    exact = np.asarray(interp.evaluate(module, y, x))
    legal = enclose(module, y, x, peer=XLA_CPU).result
    assert abs(exact[0].real) == np.pi
    assert contains(legal, exact) and contains(legal, -exact.conj())


def test_the_angle_of_a_certain_point_on_the_cut_beside_an_uncertain_one() -> None:
    module = hlo.parse("""HloModule m
ENTRY e {
  y = f32[3] parameter(0)
  x = f32[3] constant({-1, -1, -1})
  ROOT r = f32[3] atan2(y, x)
}""")
    low, high = np.float32([0.0, -0.0, -1e-3]), np.float32([0.0, -0.0, 1e-3])
    y = Enclosure(low, high, np.zeros(3, np.bool_))
    legal = enclose(module, y, peer=XLA_CPU).result
    pi = np.float32(np.pi)
    assert contains(legal, np.float32([pi, -pi, pi])).all()
    assert contains(legal, np.float32([-pi, pi, -pi])).tolist() == [False, False, True]
