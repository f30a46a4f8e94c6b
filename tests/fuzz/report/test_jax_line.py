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
from hlo.values import Array

_ONES = ("f32", "s32", "u8", "pred", "c64", "bf16", "f64")
_OPCODES = sorted({*jax_line._SAME, *jax_line._SPECIAL} - {"parameter", "constant"})


# JAX broadcasts to dimensions of size 1 by a reshape, folds an iota of one element, and takes the
# real part of a complex number to convert it to a real one.
_OTHERWISE = {"broadcast": "reshape", "iota": "constant", "convert": "real"}


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
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")  # of complex as real numbers
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
        "f32[] dot(x, x), algorithm=dot_tf32_tf32_f32",
        "f32[] dot(x, x), operand_precision={highest,highest}",
        "f32[] exponential(x), result_accuracy={mode=highest}",
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


_NUMBERS = [complex(1, np.nan), complex(np.inf, 0), complex(-0.0, 0.0), complex(1, -0.0)]


@pytest.mark.parametrize(
    "array",
    [np.array(_NUMBERS, np.complex64), np.zeros((0, 3), np.float32), np.zeros((2, 0), np.int32)],
)
def test_arrays_are_what_they_were(array: Array) -> None:
    pytest.importorskip("jax")
    names: dict[str, Any] = {}
    exec(SETUP, names)
    made = np.asarray(eval(jax_line._array(array), names))
    assert (made.shape, made.dtype) == (array.shape, array.dtype)
    for part in (np.real, np.imag):
        assert np.array_equal(np.signbit(part(made)), np.signbit(part(array)))
        assert np.array_equal(part(made), part(array), equal_nan=True)


def test_values_of_many_users_have_no_line() -> None:
    """Written at each use, their text would have 2^200 characters."""
    steps = "".join(f"  v{n} = f32[] add(v{n - 1}, v{n - 1})\n" for n in range(1, 200))
    text = f"HloModule m\nENTRY e {{\n  v0 = f32[] parameter(0)\n{steps}"
    module = hlo.parse(f"{text}  ROOT r = f32[] negate(v199)\n}}\n")
    assert line(module, (np.zeros((), np.float32),)) is None
