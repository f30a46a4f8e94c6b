"""Numbers that are limited by a constant, or converted to integers after that: every edge."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

from hlo.types import ELEMENT_TYPES

_LIMITS = ("0", "-0", "1", "-2.5", "127", "inf", "-inf", "nan")
_NUMBERS = [0.0, -0.0, 1.0, -2.5, 126.5, 127.0, 127.5, -128.0, -129.5, 255.9, 40000.0, -1e9, 3e9]
_INTEGERS = ("s4", "u8", "s8", "s16", "u32", "s32", "s64")


def _program(name: str, elements: int) -> str:
    """Return a program with each limit on either side of a maximum and a minimum, and a clip to the
    range of each integer type."""
    array = f"{name}[{elements}]"
    lines, results = [f"x = {array} parameter(0)"], list[tuple[str, str]]()
    for n, limit in enumerate(_LIMITS):
        lines += [f"c{n} = {name}[] constant({limit})"]
        lines += [f"b{n} = {array} broadcast(c{n}), dimensions={{}}"]
        for opcode, operands in itertools.product(("maximum", "minimum"), (f"x, b{n}", f"b{n}, x")):
            results.append((array, f"{opcode}({operands})"))
    for integer in _INTEGERS:
        info = ELEMENT_TYPES[integer]
        low = 0 if integer[0] == "u" else -(2 ** (info.bits - 1))
        high = 2 ** (info.bits - (integer[0] == "s")) - 1
        lines += [
            f"l{integer} = {name}[] constant({low})",
            f"h{integer} = {name}[] constant({high})",
        ]
        lines += [f"k{integer} = {array} clamp(l{integer}, x, h{integer})"]
        results += [(f"{integer}[{elements}]", f"convert(k{integer})")]
        results += [(f"{integer}[{elements}]", "convert(x)")]
    lines += [f"r{n} = {shape} {text}" for n, (shape, text) in enumerate(results)]
    names = ", ".join(f"r{n}" for n in range(len(results)))
    shapes = ", ".join(shape for shape, _ in results)
    body = "\n  ".join(lines)
    return f"HloModule m\nENTRY main {{\n  {body}\n  ROOT t = ({shapes}) tuple({names})\n}}\n"


@pytest.mark.sampled(2)
@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.parametrize("name", ["f32", "bf16", "f64"])
def test_constants_limit_numbers_as_others_do(name: str) -> None:
    special = [np.inf, -np.inf, np.nan, -np.nan, 2.0**31, -(2.0**31), 2.0**63, 1e-40, -1e-40]
    draw = np.random.default_rng(0).normal(0, 200, 28)
    values = np.array([*_NUMBERS, *special, *draw]).astype(ELEMENT_TYPES[name].numpy)
    program = _program(name, len(values))
    assert_same_bits(program, values)
