"""Convolutions of sparse operands are those of the dense ones that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from hlo.bit_equality import differences
from hlo.values import Array
from interp.envelope.budget import FAST
from interp.envelope.judgement import Judge
from interp.envelope.verdict import OUTSIDE

BATCH, PIXELS, TAPS, OUT, BLOCK = 3, 7, 3, 5, 4
FEATURES = 2  # stored ones, of as many blocks
INDEX_TYPES = ("s32", "u8", "s64", "u2", "s8")

# The whole kernel, or sparse in either operand; the batches, the input features or the taps.
WINDOW = f"window={{size={TAPS} pad=1_1}}, dim_labels=b0f_0io->b0f"


def program(left: str, right: str, extra: str, names: str, config: str) -> hlo.Module:
    result = f"f32[{BATCH},{PIXELS},{OUT}]"
    return hlo.parse(f"""HloModule sparse
ENTRY e {{
  x = f32[{left}] parameter(0)
  k = f32[{right}] parameter(1)
  {extra}
  ROOT r = {result} convolution({names}), {WINDOW}{config}
}}
""")


def dense() -> hlo.Module:
    shapes = f"{BATCH},{PIXELS},{FEATURES * BLOCK}", f"{TAPS},{FEATURES * BLOCK},{OUT}"
    return program(*shapes, "", "x, k", "")


def filled(stored: Array, indices: Array, axis: int) -> Array:
    """Put elements where they are, one after the other."""
    dims = list(stored.shape)
    dims[axis] *= BLOCK
    whole = np.zeros(dims, stored.dtype)
    for place in np.ndindex(*stored.shape):
        at = list(place)
        at[axis] = at[axis] * BLOCK + int(indices[place])
        whole[tuple(at)] = stored[place]
    return whole


def numbers(rng: np.random.Generator, *dims: int) -> Array:
    return np.asarray(rng.standard_normal(dims), np.float32)


def case(side: str, index_type: str) -> tuple[hlo.Module, tuple[Array, ...], tuple[Array, ...]]:
    """A sparse convolution, its arguments, and those of the dense one."""
    rng = np.random.default_rng([ord(one) for one in side + index_type])
    dtype = hlo.types.ELEMENT_TYPES[index_type].numpy
    x, k = numbers(rng, BATCH, PIXELS, 8), numbers(rng, TAPS, 8, OUT)
    stored = numbers(rng, BATCH, PIXELS, 2) if side == "lhs" else numbers(rng, TAPS, 2, OUT)
    indices = rng.integers(0, 2 if index_type == "u2" else BLOCK, stored.shape).astype(dtype)
    axis = 2 if side == "lhs" else 1
    config = f", sparsity_config={{{side}={{sparsity=1x4 dimension={axis} stride=1 idx=2}}}}"
    sizes = ",".join(map(str, stored.shape))
    extra = f"i = {index_type}[{sizes}] parameter(2)"
    whole = filled(stored, indices, axis)
    if side == "lhs":
        module = program(sizes, f"{TAPS},8,{OUT}", extra, "x, k, i", config)
        return module, (stored, k, indices), (whole, k)
    module = program(f"{BATCH},{PIXELS},8", sizes, extra, "x, k, i", config)
    return module, (x, stored, indices), (x, whole)


@pytest.mark.parametrize("index_type", INDEX_TYPES)
@pytest.mark.parametrize("side", ["lhs", "rhs"])
def test_all_elements_are_where_the_indices_say(side: str, index_type: str) -> None:
    module, arguments, whole = case(side, index_type)
    hlo.verify(module)
    for dialect in ("short", "long", "canonical"):
        again = hlo.parse(hlo.format(module, dialect))
        assert hlo.format(again) == hlo.format(module) or dialect == "canonical"
        hlo.verify(again)
    expected = interp.evaluate(dense(), *whole)
    assert not differences(expected, interp.evaluate(module, *arguments))
    if index_type == "u8" and has_c_compiler():
        exact = backend_c.compile(module, numerics="exact")(*arguments)
        assert not differences(expected, exact)


@pytest.mark.skipif(not has_c_compiler(), reason="compiles")
def test_fast_code_of_both_operands_sparse() -> None:
    left, right = case("lhs", "s32"), case("rhs", "s32")
    config = ", sparsity_config={" + " ".join(
        f"{side}={{sparsity=1x4 dimension={axis} stride=1 idx={number}}}"
        for side, axis, number in (("lhs", 2, 3), ("rhs", 1, 2))
    )
    x, i = left[1][0], left[1][2]
    k, j = right[1][1], right[1][2]
    sizes = [",".join(map(str, array.shape)) for array in (x, k)]
    extra = f"j = s32[{sizes[1]}] parameter(2)\n  i = s32[{sizes[0]}] parameter(3)"
    module = program(*sizes, extra, "x, k, j, i", config + "}")
    expected = interp.evaluate(dense(), left[2][0], right[2][1])
    assert not differences(expected, interp.evaluate(module, x, k, j, i))
    found = np.asarray(backend_c.compile(module)(x, k, j, i))
    judge = Judge(module, (x, k, j, i), [("", np.asarray(expected))], peer=FAST)
    assert not judge.judged([found], lambda other: None).counts[OUTSIDE]
    assert np.allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("config", "names", "message"),
    [
        ("rhs={sparsity=2x4 dimension=1 stride=1 idx=2}", "x, k, i", "C7: sparsity=2x4"),
        ("rhs={sparsity=1x0 dimension=1 stride=1 idx=2}", "x, k, i", "C7: sparsity=1x0"),
        ("rhs={sparsity=1x4 dimension=3 stride=1 idx=2}", "x, k, i", "C7: dimension=3"),
        ("rhs={sparsity=1x4 dimension=1 stride=1 idx=1}", "x, k, i", "C7: idx=1"),
        ("rhs={sparsity=1x4 dimension=1 stride=1 idx=3}", "x, k, i", "C7: idx=3"),
        ("rhs={sparsity=1x4 dimension=1 stride=1 idx=2}", "x, k, x", "C7: indices f32"),
        (
            "rhs={sparsity=1x4 dimension=1 stride=1 idx=2}",
            "x, k, i, i",
            r"operands: 4 .* not \[3\]",
        ),
        ("", "x, k, i", r"operands: 3 operands, .* not \[2\]"),
    ],
)
def test_what_is_no_sparse_operand(config: str, names: str, message: str) -> None:
    sizes = f"{BATCH},{PIXELS},8", f"{TAPS},2,{OUT}"
    extra = f"i = s32[{sizes[1]}] parameter(2)"
    module = program(*sizes, extra, names, f", sparsity_config={{{config}}}")
    with pytest.raises(hlo.VerifyError, match=message):
        hlo.verify(module)


def test_an_operand_without_indices_means_nothing_yet() -> None:
    """XLA as of jaxlib 0.10.2 takes such a text."""
    config = ", sparsity_config={rhs={sparsity=1x4 dimension=1 stride=1}}"
    module = program(f"{BATCH},{PIXELS},8", f"{TAPS},2,{OUT}", "", "x, k", config)
    hlo.verify(module)
    with pytest.raises(hlo.Unsupported, match="idx=K"):
        interp.evaluate(module, *case("rhs", "s32")[1][:2])


def test_dots_have_no_sparse_operands_any_more() -> None:
    text = """HloModule old
ENTRY e {
  x = f32[2,2] parameter(0)
  y = f32[4,3] parameter(1)
  m = u16[2] parameter(2)
  ROOT d = f32[2,3] dot(x, y, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}%s
}"""
    with pytest.raises(hlo.ParseError, match="sparsity: XLA has removed sparse operands of dot"):
        hlo.parse(text % ", sparsity=L.1@2:4")
    with pytest.raises(hlo.VerifyError, match="3 operands, 2 are needed"):
        hlo.verify(hlo.parse(text % ""))
