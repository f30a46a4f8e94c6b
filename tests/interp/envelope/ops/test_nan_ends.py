"""An enclosure with an end that is NaN admits NaN: types without zeros or infinities have such."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import hlo
from hlo.opcodes import OPCODES
from hlo.types import ELEMENT_TYPES
from hlo_oracle.arguments import from_seed
from interp.envelope.budget import XLA_CPU
from interp.envelope.enclosure import Enclosure, is_nan
from interp.envelope.evaluation import enclose
from selftest.op_tables.op_types import Cell, cells, module


def enclosures(value: object) -> Iterator[Enclosure]:
    if isinstance(value, Enclosure):
        yield value
    elif isinstance(value, tuple):
        for element in value:
            yield from enclosures(element)


def require_admitted(made: hlo.Module, *arguments: object) -> None:
    for one in enclosures(enclose(made, *arguments, peer=XLA_CPU).result):
        if isinstance(one.low, np.ndarray) and one.element_type.is_float:
            assert one.nan[is_nan(one.low) | is_nan(one.high)].all()


@pytest.mark.parametrize("name", ["f8e8m0fnu", "f8e4m3fn", "f4e2m1fn"])
def test_every_op(name: str) -> None:
    for opcode in OPCODES:
        cell = Cell(opcode, ELEMENT_TYPES[name])
        if cell not in cells(opcode):
            continue
        try:
            made = module(cell)
            arguments = from_seed(made, 0)
            require_admitted(made, *arguments)
        except hlo.Error:
            pass  # of what the language, or the envelope, has not


@pytest.mark.parametrize("values", [[0, 1], [1, 1], [-1, 1], [0, 0]])
def test_a_dot_to_a_type_without_zero(values: list[float]) -> None:
    """XLA gave NaN for 0 · 0 + 1 · 1, each product rounded to f8e8m0fnu."""
    made = hlo.parse("""HloModule m
ENTRY e {
  a = f16[2] parameter(0)
  b = f16[2] parameter(1)
  ROOT d = f8e8m0fnu[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}
}""")
    a = np.array(values, np.float16)
    require_admitted(made, a, a)
