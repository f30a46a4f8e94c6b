"""Elementwise ops on every pair of the numbers where arithmetic has edges: interpreter against C.

Of types of 8 bits and less, every pair of all numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

import batch
import numpy as np
import pytest
from conftest import has_c_compiler

import hlo
from fuzz.generators.elementwise import ALIKE
from fuzz.values import notable
from hlo.types import ELEMENT_TYPES, PRED, ElementType

TYPES = "pred s4 u8 s32 u64 f4e2m1fn f8e4m3fnuz f8e8m0fnu bf16 f32 f64".split()  # noqa: SIM905  # a list of 11 quoted names is no easier to read

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")


def _numbers(element_type: ElementType) -> np.ndarray:
    if element_type is PRED:
        return np.array([False, True])
    if element_type.bits <= 8:
        return np.arange(2**element_type.bits, dtype=np.uint8).view(element_type.numpy)
    simple = np.arange(5).astype(element_type.numpy)
    return np.concatenate([simple, np.stack(notable(element_type))])


def _cases(element_type: ElementType) -> Iterator[batch.Case]:
    """One program for each op."""
    numbers = _numbers(element_type)
    pairs = np.repeat(numbers, numbers.size), np.tile(numbers, numbers.size)
    for opcode, (types, arity) in ALIKE.items():
        if not types(element_type):
            continue
        operands = pairs if arity == 2 else (numbers,)
        shape = f"{element_type}[{operands[0].size}]"
        names = "xy"[:arity]
        lines = [f"  {name} = {shape} parameter({n})" for n, name in enumerate(names)]
        root = f"  ROOT result = {shape} {opcode}({', '.join(names)})"
        text = "\n".join(["HloModule edges", "", "ENTRY main {", *lines, root, "}"])
        yield hlo.parse(text), operands


@pytest.mark.parametrize("name", TYPES)
def test_the_same_bits(name: str) -> None:
    cases = list(_cases(ELEMENT_TYPES[name]))
    for (module, _), found in zip(cases, batch.outcomes(cases), strict=True):
        assert not found, f"{module.entry.root_instruction.opcode}: {found[0]}"
