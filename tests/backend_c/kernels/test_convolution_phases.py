"""Exact convolutions with base dilation in C: the interpreter's bits, phase by phase."""

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import hlo
import interp
from backend_c.ir.settings import Settings
from backend_c.pipeline import compiled, lowered
from hlo.bit_equality import differences

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

# Paddings that leave phases of different lengths, taps that do not divide, a window shorter than
# the dilation, negative padding, reversal, and strides that keep holes.
WINDOWS = [
    "size=4x3 pad=2_1x1_3 lhs_dilate=2x3",
    "size=2x5 pad=-1_4x3_-2 lhs_dilate=3x2 rhs_reversal=1x1",
    "size=3x2 pad=5_0x0_0 lhs_dilate=4x1 stride=1x2 rhs_dilate=1x2",
    "size=3x3 pad=1_1x1_1 lhs_dilate=2x2 stride=2x1",
]
GROUPS = ["", ", feature_group_count=2", ", batch_group_count=2"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("element_type", ["f32", "s32"])
@pytest.mark.parametrize("window", WINDOWS)
def test_phases(window: str, element_type: str) -> None:
    results, lines = [], []
    size = window.split()[0].removeprefix("size=").split("x")
    for number, group in enumerate(GROUPS):
        features = 2 if "feature" in group else 4
        weights = f"{element_type}[{features},6,{size[0]},{size[1]}]"
        lines.append(f"f{number} = {weights} parameter({number + 1})")
        lines.append(
            f"r{number} = convolution(x, f{number}), window={{{window}}},"
            f" dim_labels=bf01_io01->bf01{group}"
        )
        results.append(f"r{number}")
    text = f"""ENTRY e {{
      x = {element_type}[2,4,5,6] parameter(0)
      {chr(10).join(lines)}
      ROOT t = tuple({", ".join(results)})
    }}"""
    random = np.random.default_rng(0)
    dtype = np.float32 if element_type == "f32" else np.int32

    def drawn(*dims: int) -> np.ndarray:
        return np.asarray((random.standard_normal(dims) * 9).astype(dtype))

    x = drawn(2, 4, 5, 6)
    if element_type == "f32":
        x[0, 0, 1, 1], x[1, 2, 4, 5] = np.inf, np.nan  # a hole is no factor
    taps = tuple(map(int, size))
    features = (2 if "feature" in group else 4 for group in GROUPS)
    assert_same_bits(text, x, *(drawn(count, 6, *taps) for count in features))


def test_transposed_convolution_takes_no_more_memory_than_its_operands() -> None:
    text = """ENTRY e {
      x = f32[16,129,20,20] parameter(0)
      f = f32[129,1,16,16] parameter(1)
      ROOT c = f32[16,1,160,160] convolution(x, f), dim_labels=bf01_io01->bf01,
        window={size=16x16 pad=11_11x11_11 lhs_dilate=8x8}
    }"""
    plan = lowered(hlo.parse(text))
    assert sum(buffer.bytes for buffer in plan.buffers) < 1 << 25


@pytest.mark.parametrize("most", [1, 1000, 10**9])
def test_patches_are_packed_in_blocks(most: int) -> None:
    text = """ENTRY e {
      x = f32[2,3,17,9] parameter(0)
      f = f32[3,20,3,2] parameter(1)
      y = f32[3,70,40] parameter(2)
      z = f32[3,40,18] parameter(3)
      c = convolution(x, f), dim_labels=bf01_io01->bf01, window={size=3x2 pad=2_0x0_1}
      d = dot(y, z), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2},
        rhs_contracting_dims={1}
      ROOT t = tuple(c, d)
    }"""
    module = hlo.parse(text)
    shapes = [(2, 3, 17, 9), (3, 20, 3, 2), (3, 70, 40), (3, 40, 18)]
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(dims).astype(np.float32) for dims in shapes]
    arrays[0][0, 0, 3, 3] = np.inf
    executable = compiled(module, Settings(grain=1, most_packed=most), threads=2)
    assert not differences(interp.evaluate(module, *arrays), executable(*arrays))
