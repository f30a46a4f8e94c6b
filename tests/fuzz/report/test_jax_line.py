"""The line of JAX in a report makes the same instructions."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest

import hlo
from fuzz.draw.choices import Seeded
from fuzz.draw.programs import single_op
from fuzz.draw.values import arguments
from fuzz.report import jax_line
from fuzz.report.jax_line import SETUP, line
from hlo.types import ELEMENT_TYPES, F32, leaves

_ONES = ("f32", "s32", "u8", "pred", "c64", "bf16", "f64")
_OPCODES = sorted({*jax_line._SAME, *jax_line._SPECIAL} - {"parameter", "constant"})


# JAX broadcasts to dimensions of size 1 by a reshape, and folds an iota of one element.
_OTHERWISE = {"broadcast": "reshape", "iota": "constant"}


def _evaluated(text: str) -> tuple[Any, str]:
    """Run a line; return its result and the HLO of what it makes."""
    names: dict[str, Any] = {}
    exec(SETUP, names)
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    made = eval(ast.unparse(call.func), names)
    given = [eval(ast.unparse(one), names) for one in call.args]
    return made(*given), made.lower(*given).as_text(dialect="hlo")


@pytest.mark.sampled(12)
@pytest.mark.parametrize("opcode", _OPCODES)
def test_a_line_makes_the_instruction(opcode: str) -> None:
    pytest.importorskip("jax")
    types = [ELEMENT_TYPES[name] for name in _ONES]
    made = 0
    for seed in range(60):
        choices = Seeded(f"{opcode} {seed}")
        module = single_op(choices, opcode, element_types=types, max_elements=8)
        arrays = arguments(choices, module)
        text = line(module, arrays)
        shapes = [leaf for i in module.entry.instructions for leaf in leaves(i.shape)]
        if text is None or made == 2 or not all(shape.elements for shape in shapes):
            continue  # what has no elements is no instruction in JAX
        result, lowered = _evaluated(text)
        root = module.entry.root_instruction
        same = {p.shape for p in module.entry.parameters} == {root.shape}
        other = _OTHERWISE.get(opcode, opcode)
        assert same or f" {opcode}(" in lowered or f" {other}(" in lowered, text
        assert (result.shape, result.dtype) == (root.shape.dims, root.shape.element_type.numpy)
        made += 1
    assert made


def test_constants_and_several_instructions() -> None:
    pytest.importorskip("jax")
    module = hlo.parse("""HloModule m
ENTRY e {
  p = f32[2] parameter(0)
  c = f32[] constant(inf)
  b = f32[2] broadcast(c), dimensions={}
  n = f32[2] negate(p)
  ROOT r = f32[2] add(n, b)
}
""")
    text = line(module, (np.array([1, np.nan], np.float32),))
    assert text == (
        "jax.jit(lambda p0: jax.lax.add(jax.lax.neg(p0), jax.lax.broadcast_in_dim("
        "jnp.array(jnp.inf, jnp.float32), (2,), ())))(jnp.array([1.0, jnp.nan], jnp.float32))"
    )
    result, _ = _evaluated(text)
    assert np.array_equal(result, [np.inf, np.nan], equal_nan=True)


@pytest.mark.parametrize(
    "root",
    [
        "s32[] power(i, i)",
        "pred[] add(q, q)",
        "f32[] sinh(x)",
        "pred[] compare(x, x), direction=LT, type=TOTALORDER",
        "f8e5m2[] convert(x)",
        "f32[100] broadcast(x), dimensions={}\n t = f32[100] negate(r)\n ROOT u = (f32[]) tuple(x)",
    ],
)
def test_what_jax_has_no_function_for(root: str) -> None:
    module = hlo.parse(f"""HloModule m
ENTRY e {{
  x = f32[] parameter(0)
  i = s32[] parameter(1)
  q = pred[] parameter(2)
  {"" if "ROOT" in root else "ROOT "}r = {root}
}}
""")
    arrays = (F32.numpy.type(1), np.int32(1), np.bool_(True))
    assert line(module, tuple(np.asarray(x) for x in arrays)) is None


def test_a_long_array_has_no_line() -> None:
    module = hlo.parse("HloModule m\nENTRY e { x = f32[9] parameter(0)  ROOT r = f32[9] abs(x) }")
    assert line(module, (np.zeros(9, np.float32),)) is None


def test_names_are_those_of_jax() -> None:
    lax = pytest.importorskip("jax").lax
    assert all(hasattr(lax, name) for name in jax_line._SAME.values())
