"""Minima and maxima of numbers that are equal for a machine that takes subnormals for zeros."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from interp.envelope.budget import FAST, XLA_CPU, Budget
from interp.envelope.evaluation import enclose
from interp.envelope.verdict import OUTSIDE, judged

SUBNORMAL = 5e-39


def _worst(opcode: str, operands: tuple[float, float], actual: float, peer: Budget) -> str:
    module = hlo.parse(f"""HloModule m
ENTRY main {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] {opcode}(x, y)
}}
""")
    arrays = [np.float32(x) for x in operands]
    exact = np.asarray(interp.evaluate(module, *arrays))
    return judged(
        np.asarray(actual, np.float32), exact, enclose(module, *arrays, peer=peer).result
    ).worst


@pytest.mark.parametrize("operands", [(SUBNORMAL, 0.0), (0.0, SUBNORMAL)])
@pytest.mark.parametrize(("opcode", "sign"), [("minimum", 1), ("maximum", -1)])
def test_either_may_be_returned(opcode: str, sign: int, operands: tuple[float, float]) -> None:
    """MINPS returns its second operand where the first is not less, with the sign of neither."""
    signed = (sign * operands[0], sign * operands[1])
    assert _worst(opcode, signed, sign * SUBNORMAL, XLA_CPU) != OUTSIDE
    assert _worst(opcode, signed, sign * SUBNORMAL, FAST) == OUTSIDE  # which flushes nothing


def test_no_more_is_admitted() -> None:
    """A normal number is not equal to 0, and what is returned is one of the two."""
    assert _worst("minimum", (1e-37, 0.0), 1e-37, XLA_CPU) == OUTSIDE
    assert _worst("minimum", (SUBNORMAL, 0.0), 1e-38, XLA_CPU) == OUTSIDE
    assert _worst("minimum", (SUBNORMAL, 1.0), 1.0, XLA_CPU) == OUTSIDE
