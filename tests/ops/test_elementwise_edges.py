"""Elementwise ops on every pair of the numbers where arithmetic has edges: interpreter against C.

Of types of 8 bits and less, every pair of all numbers; of complex types, every pair of components,
and some pairs of those.
"""

from __future__ import annotations

from collections.abc import Iterator

import batch
import numpy as np
import pytest
from conftest import has_c_compiler

import hlo
from fuzz.draw.generators.elementwise import ALIKE
from fuzz.draw.values import notable
from hlo.types import C64, ELEMENT_TYPES, F32, F64, PRED, ElementType

TYPES = "pred s4 u8 s32 u64 f4e2m1fn f8e4m3fnuz f8e8m0fnu bf16 f32 f64 c64 c128".split()  # noqa: SIM905  # a list of 13 quoted names is no easier to read

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")


def _numbers(element_type: ElementType) -> np.ndarray:
    if element_type is PRED:
        return np.array([False, True])
    if element_type.bits <= 8:
        return np.arange(2**element_type.bits, dtype=np.uint8).view(element_type.numpy)
    simple = np.arange(5).astype(element_type.numpy)
    return np.concatenate([simple, np.stack(notable(element_type))])


_COMPONENTS = {
    part: [0.0, -0.0, 1, -1, 0.5, -2, 3, np.inf, -np.inf, np.nan, *ends, -np.pi / 2, 88.5, -1e3]
    for part, ends in ((F32, (1e-45, -(2.0**-126), 3.4e38)), (F64, (5e-324, -1e-300, 1.7e308)))
}
_PAIRS = 1500  # of complex operands


def _complex_pairs(element_type: ElementType) -> tuple[np.ndarray, np.ndarray]:
    """All numbers of certain components, then random pairs of those."""
    part = F32 if element_type is C64 else F64
    re, im = np.meshgrid(*[np.array(_COMPONENTS[part], part.numpy)] * 2)
    numbers = np.empty(re.size, element_type.numpy)
    numbers.real, numbers.imag = re.reshape(-1), im.reshape(-1)
    chosen = np.random.default_rng(0).choice(numbers, (2, _PAIRS))
    return np.concatenate([numbers, chosen[0]]), np.concatenate([numbers[::-1], chosen[1]])


def _pairs(element_type: ElementType) -> tuple[np.ndarray, np.ndarray]:
    if element_type.is_complex:
        return _complex_pairs(element_type)
    numbers = _numbers(element_type)
    return np.repeat(numbers, numbers.size), np.tile(numbers, numbers.size)


def _cases(element_type: ElementType) -> Iterator[batch.Case]:
    """One program for each op."""
    pairs = _pairs(element_type)
    numbers = pairs[0] if element_type.is_complex else _numbers(element_type)
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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TYPES)
def test_the_same_bits(name: str) -> None:
    cases = list(_cases(ELEMENT_TYPES[name]))
    for (module, _), found in zip(cases, batch.outcomes(cases), strict=True):
        assert not found, f"{module.entry.root_instruction.opcode}: {found[0]}"
