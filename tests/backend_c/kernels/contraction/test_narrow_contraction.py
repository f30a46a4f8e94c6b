"""Products of few rows or columns in C: the interpreter's bits, whatever the numbers."""

import numpy as np
import pytest
from against_interp import assert_same_bits
from conftest import has_c_compiler

import backend_c
import hlo
from hlo.types import ELEMENT_TYPES

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

# Vectors by vectors; by matrices whose rows, or whose columns, are in memory order; long sums.
SHAPES = [(3, 1, 7, 1), (1, 1, 9, 70), (1, 70, 5, 2), (1, 2, 9000, 1)]


@pytest.mark.parametrize("types", [("bf16", "bf16"), ("f16", "f32")])
def test_few_rows_or_columns(types: tuple[str, str]) -> None:
    factors, result = types
    lines, results, arrays = [], [], []
    random = np.random.default_rng(0)
    dtype = ELEMENT_TYPES[factors].numpy
    for number, (b, m, k, n) in enumerate(SHAPES):
        for order, (lhs, rhs) in enumerate((((b, m, k), (b, n, k)), ((b, k, m), (b, k, n)))):
            at, name = 2 - order, f"{number}{order}"
            for side, dims in (("x", lhs), ("y", rhs)):
                shape = f"{factors}[{','.join(map(str, dims))}]"
                lines.append(f"{side}{name} = {shape} parameter({len(arrays)})")
                arrays.append(_numbers(random, dims).astype(dtype))
            results.append(f"r{name}")
            lines.append(
                f"r{name} = {result}[{b},{m},{n}] dot(x{name}, y{name}), lhs_batch_dims={{0}},"
                f" rhs_batch_dims={{0}}, lhs_contracting_dims={{{at}}},"
                f" rhs_contracting_dims={{{at}}}"
            )
    lines.append(f"ROOT t = tuple({', '.join(results)})")
    assert_same_bits("ENTRY e {\n" + "\n".join(lines) + "\n}\n", *arrays)


def _numbers(random: np.random.Generator, dims: tuple[int, ...]) -> np.ndarray:
    """Draw numbers whose sums cancel, with zeros, infinities and NaN among them."""
    found = random.choice([1, -1, 1 + 2**-7, -(2.0**-6), 0, -0.0, 3, 2.0**-14], size=dims)
    if found.size > 20:
        found.flat[random.integers(found.size, size=2)] = random.choice([np.inf, np.nan], size=2)
    return np.asarray(found)


def test_windows_of_one_feature() -> None:
    text = """ENTRY e {
      x = f32[2,5,9,8] parameter(0)
      f = f32[5,1,3,2] parameter(1)
      ROOT c = convolution(x, f),
        window={size=3x2 pad=2_2x1_1 stride=1x2 rhs_dilate=1x2 lhs_dilate=1x2 rhs_reversal=1x0},
        dim_labels=bf01_io01->bf01
    }"""
    random = np.random.default_rng(0)
    x = random.standard_normal((2, 5, 9, 8)).astype(np.float32)
    x[0, 0, 0, 0] = np.inf
    assert_same_bits(text, x, random.standard_normal((5, 1, 3, 2)).astype(np.float32))


@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("types", [("f32", "f32"), ("bf16", "f16"), ("f16", "f32")])
def test_features_in_lanes(types: tuple[str, str], multiplier: int) -> None:
    """A depthwise convolution: what falls into the padding is no factor, of infinity neither."""
    factors, result = types
    features, dtype = 70, ELEMENT_TYPES[factors].numpy
    text = f"""ENTRY e {{
      x = {factors}[2,7,6,{features}] parameter(0)
      f = {factors}[3,2,1,{features * multiplier}] parameter(1)
      ROOT c = {result}[2,4,6,{features * multiplier}] convolution(x, f), window={{size=3x2
        pad=1_1x1_0 stride=2x1}}, dim_labels=b01f_01io->b01f, feature_group_count={features}
    }}"""
    random = np.random.default_rng(0)
    x = _numbers(random, (2, 7, 6, features)).astype(dtype)
    assert_same_bits(text, x, _numbers(random, (3, 2, 1, features * multiplier)).astype(dtype))


def test_batches_in_lanes() -> None:
    """Batches that lie side by side: a product for each lane, as of einsum("kb,kb->b")."""
    text = """ENTRY e {
      x = f32[9,3,130] parameter(0)
      y = f32[9,2,130] parameter(1)
      ROOT r = f32[130,3,2] dot(x, y), lhs_batch_dims={2}, rhs_batch_dims={2},
        lhs_contracting_dims={0}, rhs_contracting_dims={0}
    }"""
    random = np.random.default_rng(0)
    x, y = (_numbers(random, (9, n, 130)).astype(np.float32) for n in (3, 2))
    assert_same_bits(text, x, y)


def test_nothing_is_packed() -> None:
    text = """ENTRY e {
      x = bf16[4096,4096] parameter(0)
      y = bf16[4096] parameter(1)
      ROOT r = bf16[4096] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    }"""
    (source,) = (
        text
        for name, text in backend_c.emit(hlo.parse(text), numerics="exact").items()
        if name.endswith(".c")
    )
    assert b"hlo_tile" not in source
