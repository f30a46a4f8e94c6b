"""Check that the enclosure of every value of types without NaN contains the exact result."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from hlo.opcodes import ELEMENTARY, having
from hlo.types import ELEMENT_TYPES
from interp.envelope.budget import BUDGETS, Budget
from interp.envelope.enclosure import contains
from interp.envelope.evaluation import enclose

_TYPES = {"f4e2m1fn": 4, "f6e2m3fn": 6, "f6e3m2fn": 6}
_OPCODES = sorted(having(ELEMENTARY) - {"atan2", "power"})


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=list(BUDGETS))
def test_every_value_of_every_function(budget: Budget) -> None:
    """A subnormal may be flushed, which takes the logarithm of -0.5 from NaN, and so -0, to that of
    zero."""
    for name, bits in _TYPES.items():
        x = np.arange(1 << bits, dtype=np.uint8).view(ELEMENT_TYPES[name].numpy)
        for opcode in _OPCODES:
            module = hlo.parse(
                f"HloModule m\nENTRY e {{\n  x = {name}[{x.size}] parameter(0)\n"
                f"  ROOT r = {name}[{x.size}] {opcode}(x)\n}}\n"
            )
            legal = enclose(module, x, peer=budget).result
            inside = np.asarray(contains(legal, interp.evaluate(module, x)))
            assert inside.all(), f"{opcode}({name}), {budget.name}: {x[~inside]}"


@pytest.mark.parametrize("name", _TYPES)
def test_what_saturates_may_be_kept_in_f32(name: str) -> None:
    """x x - x of the largest number: x x is more, and stored it is x, so that 0 is literal; kept in
    f32 it is larger than x. What is stored itself is only x."""
    dtype = ELEMENT_TYPES[name].numpy
    bits = np.arange(1 << _TYPES[name], dtype=np.uint8).view(dtype).astype(np.float32)
    x = np.array([bits.max()], np.float32)
    text = (
        f"HloModule m\nENTRY e {{\n  x = {name}[1] parameter(0)\n  p = {name}[1] multiply(x, x)\n"
    )
    product = hlo.parse(text + f"  ROOT r = {name}[1] copy(p)\n}}\n")
    difference = hlo.parse(text + f"  ROOT r = {name}[1] subtract(p, x)\n}}\n")
    given, budget = x.astype(dtype), BUDGETS["XLA:CPU 0.10"]
    wide = np.minimum(x * x - x, x).astype(dtype)
    legal = enclose(difference, given, peer=budget).result
    assert contains(legal, interp.evaluate(difference, given)).all()
    assert contains(legal, wide).all()
    legal = enclose(product, given, peer=budget).result
    assert contains(legal, given).all() and not contains(legal, np.zeros(1, dtype)).any()
