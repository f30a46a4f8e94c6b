"""PyTorch among the compilers that no verdict may call wrong, where it is installed."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from fuzz.reducer.search import Case
from hlo.types import C128
from hlo.walk import column
from selftest.legal_compilers import torch_kernels
from selftest.legal_compilers.independent import of_torch
from selftest.legal_compilers.torch_kernels import TorchKernels, has_torch
from selftest.soundness import drawn
from selftest.soundness_of_compilers import examined

PROGRAM = """HloModule m
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] add(x, y)
}
maximum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] maximum(x, y)
}
greater {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = pred[] compare(x, y), direction=GT
}
ENTRY main {
  x = f32[2,6,5] parameter(0)
  w = f32[3,2,5] parameter(1)
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  sums = f32[2,6,5] reduce-window(x, zero), window={size=1x6x1 pad=0_0x5_0x0_0}, to_apply=add
  pooled = f32[2,3,5] reduce-window(x, low), window={size=1x3x1 stride=1x2x1 pad=0_0x1_0x0_0},
    to_apply=maximum
  greatest = f32[2,5] reduce(x, low), dimensions={1}, to_apply=maximum
  sorted = f32[2,6,5] sort(x), dimensions={1}, to_apply=greater
  c = f32[2,5,2] convolution(x, w), window={size=3 pad=1_2 rhs_dilate=2 rhs_reversal=1},
    dim_labels=b0f_0oi->b0f
  narrow = bf16[2,6,5] convert(x)
  e = bf16[2,6,5] exponential(narrow)
  square = f32[2,5,5] dot(x, x), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1},
    rhs_contracting_dims={1}
  factor = f32[2,5,5] cholesky(square), lower=true
  solved = f32[2,5,6] triangular-solve(factor, t), left_side=true, lower=true
  f = c64[2,6,3] fft(x), fft_type=RFFT, fft_length={5}
  ROOT all = tuple(sums, pooled, greatest, sorted, c, e, factor, solved, f)
}
"""


def test_it_is_optional() -> None:
    assert len(list(of_torch())) == has_torch()


def test_kernels_are_of_opcodes() -> None:
    assert set(torch_kernels._REAL) <= set(column("interp.ops"))


@pytest.mark.parametrize("chunk", range(2))
def test_drawn_programs_are_legal(chunk: int) -> None:
    pytest.importorskip("torch")
    for one in drawn(700, chunk, 12):
        try:
            found = examined(one, of_torch())
        except hlo.Error:
            continue
        assert not found.wrong(), (hlo.format(one.module), found.wrong())


def test_each_kernel_is_legal() -> None:
    pytest.importorskip("torch")
    text = PROGRAM.replace(
        "  solved", "  t = f32[2,5,6] transpose(x), dimensions={0,2,1}\n  solved"
    )
    module = hlo.parse(text)
    random = np.random.default_rng(0)
    arrays = tuple(
        random.standard_normal(dims).astype(np.float32) for dims in ((2, 6, 5), (3, 2, 5))
    )
    found = examined(Case(module, arrays), of_torch())
    assert len(found.judged) == 1 and not found.wrong()
    TorchKernels()(module, *arrays)


@pytest.mark.skipif(not has_torch(), reason="PyTorch is not installed")
@pytest.mark.parametrize(
    ("extent", "padding"), [(1, "2_-2"), (1, "-2_2"), (1, "-1_3"), (3, "0_-2")]
)
def test_negative_padding_that_cuts_other_padding(extent: int, padding: str) -> None:
    """PyTorch cuts before it pads: of one element it cannot cut two."""
    result = extent + sum(map(int, padding.split("_")))
    module = hlo.parse(f"""HloModule m
ENTRY main {{
  x = f32[1,{extent},1] parameter(0)
  w = f32[1,1,1] parameter(1)
  ROOT c = f32[1,{result},1] convolution(x, w), window={{size=1 pad={padding}}},
    dim_labels=b0f_0io->b0f
}}
""")
    x = np.arange(1, extent + 1, dtype=np.float32).reshape(1, extent, 1)
    w = np.full((1, 1, 1), 2, np.float32)
    expected = interp.evaluate(module, x, w)
    assert np.array_equal(TorchKernels()(module, x, w), expected)


@pytest.mark.skipif(not has_torch(), reason="PyTorch is not installed")
def test_a_conjugate_is_converted() -> None:
    """PyTorch may mark numbers as conjugates, which NumPy does not know."""
    import torch

    conjugate = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex128).conj()
    assert TorchKernels()._array(conjugate, C128).tolist() == [1 - 2j, 3 + 4j]
