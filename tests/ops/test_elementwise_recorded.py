"""Results of elementwise ops at the edges of their types, recorded from jaxlib 0.10.2 on the CPU.

Each row is one instruction on constants: opcode, element type, operands, result. The two columns
agree with it in every bit: signs of zeros, overflow, division by zero, shifts beyond the width.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from conftest import has_c_compiler

import hlo
import interp
from backend_c.native.executable import Executable
from fuzz.compilers import combined_programs
from fuzz.compilers.quick_compilers import thorough
from hlo.bit_equality import differences
from hlo.module import Module
from hlo.types import ELEMENT_TYPES

# fmt: off
RECORDED = (
    ("divide", "s8",
     "-128 -128 7 -7 7 -7 5 0 -128 127",
     "-1 0 2 2 -2 -2 0 0 127 -128",
     "-128 -1 3 -3 -3 3 -1 -1 -1 0"),
    ("divide", "u8", "255 255 7 0 128", "1 0 2 0 200", "255 255 3 255 0"),
    ("remainder", "s8",
     "-128 -128 7 -7 7 -7 5 0 -128 127",
     "-1 0 2 2 -2 -2 0 0 127 -128",
     "0 -128 1 -1 1 -1 5 0 -1 127"),
    ("remainder", "u8", "255 255 7 0 128", "1 0 2 0 200", "0 255 1 0 128"),
    ("divide", "s64",
     "-9223372036854775808 -9223372036854775808 1",
     "-1 0 0",
     "-9223372036854775808 -1 -1"),
    ("remainder", "s32", "-2147483648 -2147483648 -5", "-1 0 3", "0 -2147483648 -2"),
    ("shift-left", "s8", "-128 -1 1 1 -1 -3 64", "7 8 7 -1 -128 1 1", "0 0 -128 0 0 -6 -128"),
    ("shift-left", "u16", "65535 1 40000", "15 16 65535", "32768 0 0"),
    ("shift-right-logical", "s8", "-128 -1 1 1 -1 -3 64", "7 8 7 -1 -128 1 1", "1 0 0 0 0 126 32"),
    ("shift-right-logical", "u16", "65535 1 40000", "15 16 65535", "1 0 0"),
    ("shift-right-arithmetic", "s8",
     "-128 -1 1 1 -1 -3 64",
     "7 8 7 -1 -128 1 1",
     "-1 -1 0 0 -1 -2 32"),
    ("shift-right-arithmetic", "u16", "65535 1 40000", "15 16 65535", "65535 0 65535"),
    ("count-leading-zeros", "s16", "0 -1 1 32767", "16 0 15 1"),
    ("popcnt", "s32", "-1 0 5 -2147483648", "32 0 2 1"),
    ("abs", "s8", "-128 -1 5", "-128 1 5"),
    ("negate", "s8", "-128 3", "-128 -3"),
    ("sign", "s32", "-2147483648 0 9", "-1 0 1"),
    ("negate", "u8", "1 0", "255 0"),
    ("maximum", "f32",
     "0.0 -0.0 nan 1.0 inf -inf -0.0",
     "-0.0 0.0 1.0 nan nan inf -0.0",
     "0.0 0.0 nan nan nan inf -0.0"),
    ("minimum", "f32",
     "0.0 -0.0 nan 1.0 inf -inf -0.0",
     "-0.0 0.0 1.0 nan nan inf -0.0",
     "-0.0 -0.0 nan nan nan -inf -0.0"),
    ("remainder", "f32",
     "5.5 -5.5 5.5 0.0 -0.0 inf 3.0 3.0 -4.0",
     "2.0 2.0 -2.0 1.0 1.0 1.0 0.0 inf 2.0",
     "1.5 -1.5 1.5 0.0 -0.0 nan nan 3.0 -0.0"),
    ("power", "f32",
     "1.0 nan 0.0 -0.0 -0.0 -2.0 -8.0 inf -inf -inf -1.0 0.5 0.0",
     "nan 0.0 -1.0 -1.0 -2.0 3.0 0.33333334 -1.0 3.0 -3.0 inf -inf 0.0",
     "1.0 1.0 inf -inf inf -8.0 nan 0.0 -inf -0.0 1.0 inf 1.0"),
    ("atan2", "f32",
     "0.0 -0.0 0.0 -0.0 inf -inf inf nan",
     "0.0 0.0 -0.0 -0.0 inf -inf -inf 1.0",
     "0.0 -0.0 3.1415927 -3.1415927 0.7853982 -2.3561945 2.3561945 nan"),
    ("sign", "f32",
     "0.0 -0.0 0.5 -0.5 1.5 2.5 -2.5 0.49999997 nan -inf 8388609.0",
     "0.0 -0.0 1.0 -1.0 1.0 1.0 -1.0 1.0 nan -1.0 1.0"),
    ("ceil", "f32",
     "0.0 -0.0 0.5 -0.5 1.5 2.5 -2.5 0.49999997 nan -inf 8388609.0",
     "0.0 -0.0 1.0 -0.0 2.0 3.0 -2.0 1.0 nan -inf 8388609.0"),
    ("floor", "f32",
     "0.0 -0.0 0.5 -0.5 1.5 2.5 -2.5 0.49999997 nan -inf 8388609.0",
     "0.0 -0.0 0.0 -1.0 1.0 2.0 -3.0 0.0 nan -inf 8388609.0"),
    ("round-nearest-afz", "f32",
     "0.0 -0.0 0.5 -0.5 1.5 2.5 -2.5 0.49999997 nan -inf 8388609.0",
     "0.0 -0.0 1.0 -1.0 2.0 3.0 -3.0 0.0 nan -inf 8388609.0"),
    ("round-nearest-even", "f32",
     "0.0 -0.0 0.5 -0.5 1.5 2.5 -2.5 0.49999997 nan -inf 8388609.0",
     "0.0 -0.0 0.0 -0.0 2.0 2.0 -2.0 0.0 nan -inf 8388609.0"),
)
# fmt: on


def _array(element_type: str, numbers: str) -> np.ndarray:
    read: Any = float if ELEMENT_TYPES[element_type].is_float else int
    return np.array([read(n) for n in numbers.split()], ELEMENT_TYPES[element_type].numpy)


def _case(row: tuple[str, ...]) -> tuple[Module, tuple[np.ndarray, ...], np.ndarray]:
    opcode, element_type, *columns = row
    *operands, result = (_array(element_type, column) for column in columns)
    shape, names = f"{element_type}[{result.size}]", "xy"[: len(operands)]
    lines = [f"  {name} = {shape} parameter({n})" for n, name in enumerate(names)]
    root = f"  ROOT result = {shape} {opcode}({', '.join(names)})"
    text = "\n".join(["HloModule recorded", "", "ENTRY main {", *lines, root, "}"])
    return hlo.parse(text), tuple(operands), result


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: f"{row[0]}-{row[1]}")
def test_interpreter(row: tuple[str, ...]) -> None:
    module, operands, expected = _case(row)
    assert not differences(expected, interp.evaluate(module, *operands))


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_generated_c() -> None:
    modules, operands, expected = zip(*map(_case, RECORDED), strict=True)
    executables = combined_programs.compiled(modules, thorough(os.environ))
    for executable, arrays, result in zip(executables, operands, expected, strict=True):
        assert isinstance(executable, Executable), executable
        assert not differences(result, executable(*arrays))
