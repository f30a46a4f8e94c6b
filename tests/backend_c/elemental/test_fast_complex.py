"""Complex arithmetic in fast mode is within its budget, at infinities and zeros, too."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import backend_c
import hlo
from interp.envelope.budget import FAST
from interp.envelope.enclosure import contains
from interp.envelope.evaluation import enclose

_PARTS = (0.0, -0.0, 1.5, -2.5, 3e-30, 1e25, -3e38, 1e-44, np.inf, -np.inf, np.nan)


def _numbers(dtype: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    special = [complex(*pair) for pair in product(_PARTS, _PARTS)]
    pairs = np.array(list(product(special, special[::3]))).T
    drawn = (rng.normal(size=(2, 4000)) + 1j * rng.normal(size=(2, 4000))) * 2.0 ** rng.integers(
        -60, 60, (2, 4000)
    )
    x, y = np.concatenate([pairs, drawn], axis=1).astype(dtype)
    return x, y


@pytest.mark.parametrize(
    ("opcode", "name"),
    [("multiply", "c64"), ("multiply", "c128"), ("divide", "c64"), ("abs", "c64")],
)
def test_within_the_budget(opcode: str, name: str) -> None:
    x, y = _numbers({"c64": "complex64", "c128": "complex128"}[name])
    operands = "x" if opcode == "abs" else "x, y"
    result = "f32" if opcode == "abs" else name
    module = hlo.parse(f"""HloModule m
ENTRY e {{ x = {name}[{x.size}] parameter(0)
  y = {name}[{x.size}] parameter(1)
  ROOT r = {result}[{x.size}] {opcode}({operands}) }}
""")
    got = backend_c.compile(module)(x, y)
    legal = enclose(module, x, y, peer=FAST).result
    assert contains(legal, np.asarray(got)).all()
