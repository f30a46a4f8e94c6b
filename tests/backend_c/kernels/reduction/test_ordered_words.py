"""Extremes of 16-bit floats in memory are taken of their words: zeros, infinities, every NaN."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from hlo.bit_equality import differences
from hlo.module import Module
from hlo.values import Array

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

_DTYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
# Columns, few columns, rows, short rows, both, all.
_SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((1024, 64), (0,)),
    ((21845, 3), (0,)),
    ((5, 13107), (0,)),
    ((64, 1024), (1,)),
    ((13107, 5), (1,)),
    ((32768, 2), (1,)),
    ((16, 64, 64), (0, 2)),
    ((256, 256), (0, 1)),
)


def _program(dtype: str, operation: str, dims: tuple[int, ...], reduced: tuple[int, ...]) -> Module:
    kept = ",".join(str(size) for d, size in enumerate(dims) if d not in reduced)
    shape, axes = (",".join(map(str, numbers)) for numbers in (dims, reduced))
    return hlo.parse(f"""HloModule extreme
    extreme {{
      a = {dtype}[] parameter(0)
      b = {dtype}[] parameter(1)
      ROOT c = {dtype}[] {operation}(a, b)
    }}
    ENTRY e {{
      x = {dtype}[{shape}] parameter(0)
      init = {dtype}[] parameter(1)
      ROOT r = {dtype}[{kept}] reduce(x, init), dimensions={{{axes}}}, to_apply=extreme
    }}""")


def _words(dtype: str, count: int, only: str) -> Array:
    """Return numbers of words in any order: of all, all but NaN, or zeros of both signs."""
    generator = np.random.default_rng(3)
    words = generator.permutation(np.arange(1 << 16).astype(np.uint16)).view(_DTYPES[dtype])
    if only == "numbers":
        words = words[~np.isnan(words.astype(np.float32))]
    elif only == "zeros":
        words = np.where(generator.random(count) < 0.5, words.dtype.type(0), words.dtype.type(-0.0))
    return np.asarray(np.resize(words, count))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("only", ["all", "numbers", "zeros"])
@pytest.mark.parametrize("operation", ["maximum", "minimum"])
@pytest.mark.parametrize("dtype", list(_DTYPES))
@pytest.mark.parametrize(("dims", "reduced"), _SHAPES, ids=str)
def test_extremes_have_the_bits_of_the_interpreter(
    dims: tuple[int, ...], reduced: tuple[int, ...], dtype: str, operation: str, only: str
) -> None:
    module = _program(dtype, operation, dims, reduced)
    x = _words(dtype, int(np.prod(dims)), only).reshape(dims)
    executable = backend_c.compile(module, numerics="fast")
    for number in (-np.inf, np.inf, -0.0, 0.0, 3.5, np.nan):
        init = np.asarray(number, _DTYPES[dtype])
        expected = np.asarray(interp.evaluate(module, x, init))
        assert not differences(np.asarray(executable(x, init)), expected)


@pytest.mark.parametrize("dtype", list(_DTYPES))
def test_nothing_is_converted(dtype: str) -> None:
    module = _program(dtype, "maximum", (1024, 64), (0,))
    text = "".join(backend_c.compile(module, numerics="exact").source.values())
    kernel = text[text.rindex("static void kernel_0") :]
    assert "hlo_maximum_s16" in kernel
    assert "float" not in kernel[kernel.index("int16_t t") :]
