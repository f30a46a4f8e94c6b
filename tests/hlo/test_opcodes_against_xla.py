"""Traits that say what XLA's parser does: which shapes and layouts it infers, and what it takes."""

from __future__ import annotations

import inspect
import re

import pytest

import hlo
from fuzz.draw.choices import Seeded
from fuzz.draw.programs import GENERATORS, single_op
from hlo.opcodes import (
    APPROXIMATED,
    CONTRACTION,
    DECLARED,
    ELEMENTWISE,
    GIVEN,
    KEEPS_LAYOUT,
    having,
    of_family,
)
from hlo.walk import column, function_name

xla = pytest.importorskip("jaxlib._hlo")

PROGRAMS = 8  # of each opcode


def printed(text: str) -> str | None:
    """Parse and print a text with XLA; None if XLA refuses it."""
    try:
        return str(xla.hlo_module_from_text(text).to_string())
    except RuntimeError:
        return None


def is_inferred(text: str) -> bool:
    """Whether XLA infers the shape that is left out, or tries to (it has no rule for
    opt-barrier)."""
    try:
        xla.hlo_module_from_text(text)
    except RuntimeError as error:
        return "failed to infer shape for opcode" in str(error)
    return True


# A constant's and a parameter's parentheses hold something else; inferring contractions of some
# types ends XLA's process.
@pytest.mark.parametrize("opcode", sorted(set(GENERATORS) - having(GIVEN) - of_family(CONTRACTION)))
def test_declared(opcode: str) -> None:
    taken = []
    for seed in range(PROGRAMS):
        text = hlo.format(single_op(Seeded(f"{opcode} {seed}"), opcode, max_elements=64))
        without = re.sub(rf"^(  (?:ROOT )?\S+ =) .* ({opcode}\()", r"\1 \2", text, flags=re.M)
        if "<=" not in text and printed(text) is not None:
            assert without != text
            taken.append(is_inferred(without))
    assert len(set(taken)) < 2
    assert not taken or taken[0] == (opcode not in having(DECLARED))


CONTRACTIONS = {
    "convolution": "x, x), dim_labels=bf_io->bf",
    "dot": "x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "ragged-dot": "x, y, n), lhs_contracting_dims={1}, rhs_contracting_dims={1},"
    " lhs_ragged_dims={0}, rhs_group_dims={0}",
    "scaled-dot": "x, x, s, s), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
}


@pytest.mark.parametrize("opcode", CONTRACTIONS)
def test_declared_contractions(opcode: str) -> None:
    text = f"""HloModule m
ENTRY e {{
  x = f32[2,2] parameter(0)
  y = f32[2,2,2] parameter(1)
  n = s32[2] parameter(2)
  s = f32[] parameter(3)
  ROOT r = {opcode}({CONTRACTIONS[opcode]}
}}
"""
    assert is_inferred(text) == (opcode not in having(DECLARED))
    assert set(CONTRACTIONS) == of_family(CONTRACTION)


@pytest.mark.parametrize("opcode", sorted(of_family(ELEMENTWISE)))
def test_approximated(opcode: str) -> None:
    function = column("hlo.ops")[function_name(opcode)].function
    kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
    names = ", ".join("abc"[: kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD)])
    parameters = "\n".join(f"  {name} = f32[2] parameter({n})" for n, name in enumerate("abc"))
    root = f"  ROOT r = f32[2] {opcode}({names}), result_accuracy={{mode=highest}}"
    taken = printed("\n".join(("HloModule m", "ENTRY e {", parameters, root, "}"))) is not None
    assert taken == (opcode in having(APPROXIMATED))


LAID_OUT = {
    "copy": "x)",
    "reverse": "x), dimensions={0}",
    "negate": "x)",
    "add": "x, x)",
    "select": "p, x, x)",
    "pad": "x, z), padding=0_0x0_0",
    "concatenate": "x), dimensions={0}",
    "gather": "x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},"
    " index_vector_dim=1, slice_sizes={1,3}",
}


@pytest.mark.parametrize("opcode", LAID_OUT)
def test_keeps_layout(opcode: str) -> None:
    text = f"""HloModule m
ENTRY e {{
  x = f32[2,3]{{0,1}} parameter(0)
  p = pred[2,3]{{0,1}} parameter(1)
  z = f32[] parameter(2)
  i = s32[2,1]{{0,1}} parameter(3)
  ROOT r = {opcode}({LAID_OUT[opcode]}
}}
"""
    found = re.search(r"ROOT %r = f32\[[\d,]*\]\{([\d,]*)\}", str(printed(text)))
    assert found is not None
    assert (found[1] == "0,1") == (opcode in having(KEEPS_LAYOUT) | of_family(ELEMENTWISE))
    assert having(KEEPS_LAYOUT) <= set(LAID_OUT)
