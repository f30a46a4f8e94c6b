"""Blocks of CUDA threads multiply in tiles of shared memory: exact bits, whatever their size."""

from __future__ import annotations

import re

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from backend_c.ir.settings import Numerics, Settings
from backend_c.kernels.parts.contraction_in_blocks import block_contraction, block_parts
from backend_c.kernels.parts.contraction_in_blocks.block_products import sized
from backend_c.kernels.parts.contraction_in_blocks.tile_choice import Division
from backend_c.native.cuda_emulation import Schedule
from backend_c.pipeline import emulated
from fuzz.oracles.cuda_emulated import SIZES
from hlo.bit_equality import differences
from hlo.module import Module
from hlo_oracle.arguments import from_seed

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

# lhs, rhs, result: what each kind of sum takes.
TYPES = (
    *(
        ("f32", "f32", "f32"),
        ("bf16", "bf16", "bf16"),
        ("f16", "f32", "f16"),
        ("f32", "f32", "f64"),
    ),
    *(("f64", "f64", "f64"), ("s8", "s8", "s32"), ("u8", "s16", "s64"), ("s64", "s64", "s64")),
    *(("u4", "s4", "s8"), ("pred", "pred", "pred"), ("s8", "s8", "f32"), ("c64", "c64", "c64")),
    *(("c128", "c64", "c128"), ("f32", "c64", "c64"), ("c128", "c64", "c64")),
    *(("f32", "f32", "s32"), ("f8e5m2", "f8e4m3fn", "f32")),
)
# The dimension of lhs, and of rhs, that is contracted.
LAYOUTS = ((2, 1), (2, 2), (1, 1), (1, 2))


def product(types: tuple[str, str, str], layout: tuple[int, int], sizes: tuple[int, ...]) -> Module:
    """A product of matrices of a batch, with an epilogue."""
    (left, right, result), (one, other), (b, m, n, k) = types, layout, sizes
    lhs = f"{left}[{b},{m},{k}]" if one == 2 else f"{left}[{b},{k},{m}]"
    rhs = f"{right}[{b},{n},{k}]" if other == 2 else f"{right}[{b},{k},{n}]"
    shape = f"{result}[{b},{m},{n}]"
    made = hlo.parse(f"""
        HloModule m
        ENTRY e {{
          x = {lhs} parameter(0)
          y = {rhs} parameter(1)
          z = {shape} dot(x, y), lhs_batch_dims={{0}}, rhs_batch_dims={{0}},
              lhs_contracting_dims={{{one}}}, rhs_contracting_dims={{{other}}}
          ROOT r = {result}[{m},{b},{n}] transpose(z), dimensions={{1,0,2}}
        }}""")
    hlo.verify(made)
    return made


def test_every_type_in_blocks_of_every_size() -> None:
    modules = [
        product(types, LAYOUTS[number % 4], (1 + number % 2, 17 - number % 3 * 4, 9, 8 + number))
        for number, types in enumerate(TYPES)
    ]
    programs = emulated(modules, Settings(grain=1, has_blocks=True))
    for which, (types, module, program) in enumerate(zip(TYPES, modules, programs, strict=True)):
        arguments = from_seed(module, 0)
        expected = interp.evaluate(module, *arguments)
        # Every second size of each: all with the types beside it.
        for number, threads in list(enumerate(SIZES))[which % 2 :: 2]:
            found = program(*arguments, schedule=Schedule(threads, 2, seed=number))
            assert not differences(expected, found), (types, threads)


@pytest.mark.parametrize("size", [32, 64])
def test_tiles_of_every_size(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (block_contraction, block_parts):
        monkeypatch.setattr(
            module, "division", lambda factors, row: Division(sized(row, size, factors.k), 1)
        )
    for number, types in enumerate([("f32", "f32", "f32"), ("s32", "s32", "s32")]):
        module = product(types, LAYOUTS[number], (1, size + 3, size + 9, 19))
        arguments = from_seed(module, 0)
        (text,) = (made := backend_c.emulate(module)).source.values()
        assert f"_{size}_add(" in text
        expected = interp.evaluate(module, *arguments)
        for schedule in (Schedule(100, 2, seed=1), Schedule(256, 1)):
            assert not differences(expected, made(*arguments, schedule=schedule))


def test_sums_whose_rounding_is_open_are_added_again() -> None:
    module = product(("f32", "f32", "f32"), (2, 1), (1, 20, 18, 24))
    generator = np.random.default_rng(0)
    lhs, rhs = (
        np.ldexp(generator.standard_normal(shape), generator.integers(-60, 60, shape))
        for shape in ((1, 20, 24), (1, 24, 18))
    )
    lhs[0, :, 12:] = -lhs[0, :, :12]  # sums that cancel
    rhs[0, 12:, 9:] = rhs[0, :12, 9:]
    lhs[0, 3, 5], rhs[0, 7, 2] = np.inf, np.nan
    arguments = [array.astype(np.float32) for array in (lhs, rhs)]
    expected = interp.evaluate(module, *arguments)
    found = backend_c.emulate(module)(*arguments, schedule=Schedule(96, 2, seed=1))
    assert not differences(expected, found)
    assert np.count_nonzero(expected == 0.0) > 100 and np.isnan(expected).any()


LONG = (("f32", "f32", "f32"), ("pred", "pred", "pred"), ("c64", "c64", "c64"))


def test_long_sums_of_few_results_are_divided() -> None:
    modules = [product(types, (1, 2), (1, 9, 11, 1031 + n)) for n, types in enumerate(LONG)]
    modules.append(product(("s8", "u8", "s32"), (2, 2), (1, 33, 32, 1030)))
    programs = emulated(modules, Settings(grain=1, has_blocks=True))
    for module, program in zip(modules, programs, strict=True):
        arguments = from_seed(module, 0)
        expected = interp.evaluate(module, *arguments)
        for threads in (60, 256):
            found = program(*arguments, schedule=Schedule(threads, 2, seed=1))
            assert not differences(expected, found), module
    (text,) = programs[0].source.values()
    # 128 steps of a part at least, and whole sets; complex products have twice as many.
    parts = re.findall(r"i\d+ < (\d+); i\d+ \+= gridDim", text)
    assert {"7", "26", "6"} <= set(parts)


# Padding, strides, and infinities that meet it; groups; a prologue that is written out.
CONVOLUTION = """
HloModule m
ENTRY e {
  x = f32[2,9,7,8] parameter(0)
  w = f32[3,3,8,10] parameter(1)
  y = f32[2,5,4,10] convolution(x, w), window={size=3x3 stride=2x2 pad=1_1x1_1},
      dim_labels=b01f_01io->b01f
  v = f32[10,16] parameter(2)
  z = f32[2,5,4,16] dot(f32[2,5,4,10] tanh(y), v), lhs_contracting_dims={3},
      rhs_contracting_dims={0}
  ROOT both = (f32[2,5,4,10], f32[2,5,4,16]) tuple(y, z)
}"""


@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_convolutions_are_products_of_patches(numerics: str) -> None:
    module = hlo.parse(CONVOLUTION)
    x, *others = from_seed(module, 0)
    assert isinstance(x, np.ndarray)
    x[0, 4, 2] = np.inf
    expected = interp.evaluate(module, x, *others)
    made = backend_c.emulate(module, numerics)
    (text,) = made.source.values()
    assert "hlo_block_tile_" in text
    for threads in (32, 1024):
        found = made(x, *others, schedule=Schedule(threads, 2, seed=3))
        if numerics == "exact":
            assert not differences(expected, found)
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert np.isinf(expected[0]).any() or np.isnan(expected[0]).any()


# The same of patches in each order of memory, of groups, and of sums that are divided.
PATCHES = (
    ("f32[1,4,4,32]", "f32[3,3,32,10]", "size=3x3 pad=1_2x0_1", "b01f_01io->b01f", ""),
    ("f32[2,16,5,6]", "f32[3,2,8,20]", "size=3x2 pad=2_1x0_0 stride=2x1", "bf01_01io->bf01",
     ", feature_group_count=2"),
    ("bf16[1,9,5,64]", "bf16[3,2,64,34]", "size=3x2 pad=1_1x0_1 rhs_dilate=1x2",
     "b01f_01io->b01f", ""),
    ("s8[4,9,9]", "s8[5,9,18]", "size=5 pad=2_3", "b0f_0io->b0f", ", batch_group_count=2"),
)  # fmt: skip


@pytest.mark.parametrize("numerics", [Numerics.EXACT, Numerics.FAST])
def test_patches_have_their_corners_in_shared_memory(numerics: Numerics) -> None:
    modules = [
        hlo.parse(f"""
            HloModule m
            ENTRY e {{
              x = {x} parameter(0)
              w = {w} parameter(1)
              ROOT y = convolution(x, w), window={{{window}}}, dim_labels={labels}{groups}
            }}""")
        for x, w, window, labels, groups in PATCHES
    ]
    programs = emulated(modules, Settings(numerics, grain=1, has_blocks=True))
    for number, (module, program) in enumerate(zip(modules, programs, strict=True)):
        # Small whole numbers: of these sums in any order are exact.
        x, w = (np.rint(np.asarray(a, np.float64)) for a in from_seed(module, 0))
        given = [a.clip(-3, 3).astype(p.dtype) for a, p in zip((x, w), from_seed(module, 0))]
        expected = interp.evaluate(module, *given)
        for schedule in (Schedule(33 + number, 2, seed=1), Schedule(256, 3)):
            assert not differences(expected, program(*given, schedule=schedule)), PATCHES[number]
    (text,) = programs[0].source.values()
    assert not re.search(r"int64_t [in]\d+ = ", text)  # none needs 64 bits


# What tensor cores take, and f32 and f64, which they do not.
FAST = (
    *(("s8", "s8", "s32"), ("u4", "s8", "u32"), ("bf16", "bf16", "bf16"), ("f16", "f16", "f32")),
    *(("f32", "f32", "f32"), ("f64", "f64", "f64"), ("s8", "s8", "f32")),
)


def test_fast_sums_are_plain() -> None:
    """Fast products have the same bits with any number of threads, in every order of operands, at
    addresses that are aligned to vectors and at others."""
    cases = [
        (types, product(types, layout, (1 + number % 2, 66, 34, 40 + number % 3)))
        for number, types in enumerate(FAST)
        for layout in (LAYOUTS[number % 4], LAYOUTS[(number + 2) % 4])
    ]
    settings = Settings(Numerics.FAST, grain=1, has_blocks=True)
    programs = emulated([module for _, module in cases], settings)
    for number, ((types, module), program) in enumerate(zip(cases, programs, strict=True)):
        arguments = from_seed(module, 0)
        expected = interp.evaluate(module, *arguments)
        one = program(*arguments, schedule=Schedule(20 + number, 2))
        other = program(*arguments, schedule=Schedule(256, 2, seed=7))
        assert not differences(one, other)
        if "32" in types[2] and types[0] != types[2] and "f" not in types[2]:
            assert not differences(expected, one), types
        wide = [np.asarray(value, np.float64) for value in (expected, one)]
        np.testing.assert_allclose(*wide, rtol=1e-2 if types[2] == "bf16" else 1e-5, atol=1e-6)
    (text,) = programs[0].source.values()
    assert {f"hlo_block_mma_{name}_64_add" in text for name in ("ss", "us", "bf16", "f16")} == {
        True
    }


def test_fast_floats_of_bytes_are_sums_of_floats() -> None:
    """Sums of tensor cores would wrap; and padding is looked at again where sums are not finite."""
    module = hlo.parse("""
        HloModule m
        ENTRY e {
          x = s8[1,6,6,32] parameter(0)
          w = s8[3,3,32,33] parameter(1)
          ROOT y = f32[1,6,6,33] convolution(x, w), window={size=3x3 pad=1_1x1_1},
              dim_labels=b01f_01io->b01f
        }""")
    arguments = from_seed(module, 0)
    made = backend_c.emulate(module, "fast")
    (text,) = made.source.values()
    assert "hlo_block_tile_f32_16_add" in text
    found = made(*arguments, schedule=Schedule(256, 2))
    assert not differences(interp.evaluate(module, *arguments), found)
