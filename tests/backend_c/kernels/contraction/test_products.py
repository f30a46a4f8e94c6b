"""Products of narrow types: integers wrap in both modes, bf16 is summed in f32, nothing is flushed.

Integers are compared by bits with sums in 64 bits; which instructions make them is up to the
processor (tests/backend_c/runtime/test_runtime_gemm_narrow.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from conftest import has_c_compiler
from hypothesis import given, settings
from hypothesis import strategies as st

import backend_c
import hlo
from hlo.types import BF16, ELEMENT_TYPES

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

_INTEGERS = ("s8", "u8", "s16", "s4", "u4")


@dataclass(frozen=True)
class Dot:
    """A dot of integers; operands may be transposed, and converted to the result's type first."""

    batch: int
    m: int
    n: int
    k: int
    types: tuple[str, str]
    transposed: tuple[bool, bool]
    is_converted: bool
    result: str

    @property
    def letters(self) -> tuple[str, str]:
        """Einsum's letters of the operands."""
        return ("zca" if self.transposed[0] else "zac"), ("zbc" if self.transposed[1] else "zcb")

    def lines(self, number: int) -> list[str]:
        """Return the instructions."""
        lines, names = [], []
        for side, (name, letters) in enumerate(zip(self.types, self.letters, strict=True)):
            dims = ",".join(str(self.extents()[c]) for c in letters)
            names.append(f"p{2 * number + side}")
            lines.append(f"{names[side]} = {name}[{dims}] parameter({2 * number + side})")
            if self.is_converted:
                lines.append(f"c{names[side]} = {self.result}[{dims}] convert({names[side]})")
                names[side] = f"c{names[side]}"
        at = [letters.index("c") for letters in self.letters]
        dims = f"lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{{at[0]}}}"
        shape = f"{self.result}[{self.batch},{self.m},{self.n}]"
        dot = f"dot({', '.join(names)}), {dims}, rhs_contracting_dims={{{at[1]}}}"
        return [*lines, f"r{number} = {shape} {dot}"]

    def extents(self) -> dict[str, int]:
        """Return what the letters stand for."""
        return {"z": self.batch, "a": self.m, "b": self.n, "c": self.k}

    def operands(self, rng: np.random.Generator) -> list[np.ndarray]:
        """Draw operands, half of them the ends of the range, where products are largest."""
        drawn = []
        for name, letters in zip(self.types, self.letters, strict=True):
            element_type = ELEMENT_TYPES[name]
            half = 1 << element_type.bits - 1
            low, high = (-half, half) if element_type.kind == "signed" else (0, 2 * half)
            dims = [self.extents()[c] for c in letters]
            ends = rng.choice([low, high - 1], dims)
            values = np.where(rng.random(dims) < 0.5, ends, rng.integers(low, high, dims))
            drawn.append(values.astype(element_type.numpy))
        return drawn

    def expected(self, operands: Sequence[np.ndarray]) -> np.ndarray:
        """Sum in 64 bits, then wrap."""
        spec = f"{','.join(self.letters)}->zab"
        sums = np.einsum(spec, *(operand.astype(np.int64) for operand in operands))
        return np.asarray(sums.astype(ELEMENT_TYPES[self.result].numpy))


@st.composite
def _dots(draw: st.DrawFn) -> Dot:
    result = draw(st.sampled_from(("s32", "s32", "u32", "s8")))
    return Dot(
        draw(st.sampled_from((1, 1, 3, 17, 0))),
        draw(st.sampled_from((1, 5, 6, 16, 33, 97, 130))),
        draw(st.sampled_from((1, 5, 6, 15, 33, 64, 100))),
        draw(st.sampled_from((0, 1, 5, 8, 63, 130, 300))),
        (draw(st.sampled_from(_INTEGERS)), draw(st.sampled_from(_INTEGERS))),
        (draw(st.booleans()), draw(st.booleans())),
        draw(st.booleans()) and result != "s8",
        result,
    )


@settings(max_examples=3)
@given(st.lists(_dots(), min_size=6, max_size=8))
def test_integers_wrap_in_both_modes(cases: list[Dot]) -> None:
    lines = [line for n, case in enumerate(cases) for line in case.lines(n)]
    shapes = ", ".join(f"{c.result}[{c.batch},{c.m},{c.n}]" for c in cases)
    names = ", ".join(f"r{n}" for n in range(len(cases)))
    body = "\n  ".join([*lines, f"ROOT t = ({shapes}) tuple({names})"])
    module = hlo.parse(f"HloModule m\nENTRY e {{\n  {body}\n}}\n")
    rng = np.random.default_rng(5)
    operands = [case.operands(rng) for case in cases]
    flat = [array for pair in operands for array in pair]
    for numerics in ("exact", "fast"):
        executable = backend_c.compile(module, numerics=numerics)
        for threads in (1, 3):
            found = executable.in_threads(threads)(*flat)
            for case, pair, result in zip(cases, operands, found, strict=True):
                assert (result == case.expected(pair)).all()


_BF16 = """HloModule m
ENTRY e {
  a = bf16[100,200] parameter(0)
  b = bf16[200,70] parameter(1)
  w = f32[100,200] convert(a)
  v = f32[200,70] convert(b)
  r = f32[100,70] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[100,70] dot(w, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[100,70], f32[100,70]) tuple(r, s)
}
"""


@pytest.mark.parametrize("powers", [(0, 0), (-70, -72), (-131, 20), (20, -131), (-60, -55)])
def test_no_sum_of_bf16_is_flushed(powers: tuple[int, int]) -> None:
    rng = np.random.default_rng(5)
    left, right = (
        rng.integers(-7, 8, dims).astype(np.float32) * np.float32(2.0**power)
        for power, dims in zip(powers, ((100, 200), (200, 70)), strict=True)
    )
    operands = left.astype(BF16.numpy), right.astype(BF16.numpy)
    # Multiples of 2^-149 of less than 24 bits: f32 has all sums.
    expected = (left.astype(np.float64) @ right.astype(np.float64)).astype(np.float32)
    executable = backend_c.compile(hlo.parse(_BF16), numerics="fast")
    for threads in (1, 3):
        for result in executable.in_threads(threads)(*operands):
            assert (result == expected).all()
