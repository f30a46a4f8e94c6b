"""Blocks of CUDA threads add up products of which tiles would be mostly empty."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import has_c_compiler
from test_block_contraction import TYPES, product

import hlo
import interp
from backend_c.ir.settings import Numerics, Settings
from backend_c.native.cuda_emulation import Schedule
from backend_c.pipeline import emulated
from hlo.bit_equality import differences
from hlo.module import Module
from hlo.values import Value
from hlo_oracle.arguments import from_seed

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

# Strips of threads, vectors along lines and along steps, sums that blocks share, single ones.
SIZES = (
    *((1, 1, 1, 1), (3, 1, 5, 2), (5, 8, 8, 8), (2, 9, 12, 5), (1, 33, 2, 65)),
    *((2, 7, 1, 70), (1, 3, 9, 90), (2, 1, 40, 100), (1, 1, 1, 9001), (1, 13, 35, 40)),
)
LAYOUTS = ((2, 1), (2, 2), (1, 1), (1, 2))
CASES = [
    (types, SIZES[(2 * number + other) % len(SIZES)], LAYOUTS[(number + other) % 4])
    for number, types in enumerate(TYPES)
    for other in range(2)
]


def whole(value: Value) -> np.ndarray:
    """Small whole numbers: of these sums in any order are exact."""
    array = np.asarray(value)
    if array.dtype.kind in "iub":
        return array
    wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    return np.asarray(np.clip(np.rint(wide.real), -3, 3), array.dtype)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("numerics", [Numerics.EXACT, Numerics.FAST])
def test_every_type_and_shape(numerics: Numerics) -> None:
    modules = [product(types, layout, sizes) for types, sizes, layout in CASES]
    programs = emulated(modules, Settings(numerics, grain=1, has_blocks=True))
    for number, (module, program) in enumerate(zip(modules, programs, strict=True)):
        arguments = from_seed(module, 0)
        if numerics is Numerics.FAST:
            arguments = tuple(whole(value) for value in arguments)
        expected = interp.evaluate(module, *arguments)
        for schedule in (Schedule((1, 60)[number % 2], 2, seed=number), Schedule(256, 2)):
            found = program(*arguments, schedule=schedule)
            assert not differences(expected, found), (CASES[number], schedule)


def test_sums_whose_rounding_is_open_are_added_again() -> None:
    modules = [
        product(("f32", "f32", "f32"), (2, 1), (1, *sizes)) for sizes in ((2, 9, 300), (9, 9, 6))
    ]
    programs = emulated(modules, Settings(grain=1, has_blocks=True))
    generator = np.random.default_rng(0)
    for module, program in zip(modules, programs, strict=True):
        lhs, rhs = (np.array(value) for value in from_seed(module, 0))
        half = lhs.shape[2] // 2
        lhs *= np.exp2(generator.integers(-60, 60, lhs.shape)).astype(np.float32)
        lhs[..., half:] = -lhs[..., :half]  # sums that cancel
        rhs[:, half:, 2:] = rhs[:, :half, 2:]
        lhs[0, 1, 2], lhs[0, 1, half + 2] = np.inf, -np.inf
        expected = interp.evaluate(module, lhs, rhs)
        assert not differences(expected, program(lhs, rhs, schedule=Schedule(96, 2)))
        assert np.count_nonzero(np.asarray(expected) == 0.0) > 6 and np.isnan(expected).any()


def convolution(window: str, groups: str, features: tuple[int, int], labels: str) -> Module:
    """A convolution of so many input features of a group and output features."""
    size = window.split()[0].removeprefix("size=").replace("x", ",")
    of_input = 4 if "batch" in groups else features[0] * int(groups.split("=")[1] or 1)
    dims = f"4,{of_input},5,8" if labels == "bf01" else f"4,5,8,{of_input}"
    made = hlo.parse(f"""
        HloModule m
        ENTRY e {{
          x = f32[{dims}] parameter(0)
          w = f32[{features[0]},{features[1]},{size}] parameter(1)
          ROOT y = convolution(x, w), window={{{window}}}, {groups},
              dim_labels={labels}_io01->{labels}
        }}""")
    hlo.verify(made)
    return made


# Groups of one feature and of a few, in both orders of memory, windows that leave the input; those
# with base dilation are a convolution for each phase, whose results lie apart.
CONVOLUTIONS = (
    ("size=3x3 pad=1_1x1_1", "feature_group_count=6", (1, 6), "b01f"),
    ("size=3x2 pad=1_1x0_3 stride=2x1", "feature_group_count=4", (1, 8), "bf01"),
    ("size=3x3 pad=1_1x1_1 rhs_dilate=1x2", "feature_group_count=2", (3, 4), "b01f"),
    ("size=2x2", "batch_group_count=2", (4, 6), "bf01"),
    ("size=3x3 pad=1_2x1_1 lhs_dilate=2x2", "feature_group_count=3", (1, 3), "b01f"),
    ("size=3x3 pad=1_2x1_1 lhs_dilate=2x2", "feature_group_count=1", (9, 10), "b01f"),
)


@pytest.mark.parametrize("numerics", [Numerics.EXACT, Numerics.FAST])
def test_convolutions_of_few_features(numerics: Numerics) -> None:
    modules = [convolution(*case) for case in CONVOLUTIONS]
    programs = emulated(modules, Settings(numerics, grain=1, has_blocks=True))
    for case, module, program in zip(CONVOLUTIONS, modules, programs, strict=True):
        x, w = (np.array(whole(value)) for value in from_seed(module, 0))
        w[0, 0, -1, -1] = np.inf  # meets padding, where nothing is multiplied
        expected = interp.evaluate(module, x, w)
        for schedule in (Schedule(33, 2, seed=1), Schedule(256, 1)):
            assert not differences(expected, program(x, w, schedule=schedule)), case
