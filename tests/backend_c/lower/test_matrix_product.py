"""A kernel is a product for a library if it is one large dot of matrices that lie in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import hlo
from backend_c.ir.settings import LIBRARY_SIDE, Numerics, Settings, launched
from backend_c.lower.matrix_product import Matrix, MatrixProduct, matrix_product
from fuzz.draw.choices import examples
from fuzz.draw.programs import program
from hlo.types import F32

FAST = replace(launched(Numerics.FAST), library_side=LIBRARY_SIDE)


def found(
    lhs: str, rhs: str, result: str, numbers: str, settings: Settings = FAST
) -> MatrixProduct | None:
    """The product that a dot is; ``numbers`` are its contracting and its batch dimensions."""
    text = f"""HloModule m
ENTRY e {{ x = {lhs} parameter(0)
          y = {rhs} parameter(1)
          ROOT d = {result} dot(x, y), {numbers} }}"""
    return matrix_product(hlo.parse(text).entry, settings)


def contracting(lhs: str, rhs: str, batch: str = "") -> str:
    names = f"lhs_contracting_dims={{{lhs}}}, rhs_contracting_dims={{{rhs}}}"
    return f"{names}, lhs_batch_dims={{{batch}}}, rhs_batch_dims={{{batch}}}"


def test_dimensions_of_one_kind_are_one() -> None:
    """Batch in the middle of lhs; two free dimensions; two contracted ones in either order."""
    product = found("f32[128,4,2,64,2]", "f32[4,2,64,2,512]", "f32[4,2,128,512]",
                    "lhs_contracting_dims={3,4}, rhs_contracting_dims={2,3},"
                    "lhs_batch_dims={1,2}, rhs_batch_dims={0,1}")  # fmt: skip
    assert product is not None and product.result_type is F32
    assert (product.batch, product.m, product.n, product.k) == (8, 128, 512, 128)
    assert product.lhs == Matrix(0, F32, 8 * 128, 128, is_along_k=True)
    assert product.rhs == Matrix(1, F32, 512, 128 * 512, is_along_k=False)


@pytest.mark.parametrize(
    ("lhs", "rhs", "result", "numbers", "is_taken"),
    [
        ("bf16[256,512]", "bf16[512,128]", "bf16[256,128]", contracting("1", "0"), True),
        ("bf16[256,512]", "bf16[512,128]", "f32[256,128]", contracting("1", "0"), True),
        ("bf16[256,512]", "f32[512,128]", "f32[256,128]", contracting("1", "0"), False),
        ("f16[256,512]", "f16[512,128]", "bf16[256,128]", contracting("1", "0"), False),
        ("c64[256,512]", "c64[512,128]", "c64[256,128]", contracting("1", "0"), False),
        ("s32[256,512]", "s32[512,128]", "s32[256,128]", contracting("1", "0"), False),
        ("s8[256,512]", "s8[128,512]", "s32[256,128]", contracting("1", "1"), True),
        ("s8[256,512]", "s8[512,128]", "s32[256,128]", contracting("1", "0"), False),
        ("s8[258,512]", "s8[128,512]", "s32[258,128]", contracting("1", "1"), False),
        # Not large enough: in a side, in all.
        ("f32[4096,512]", "f32[512,127]", "f32[4096,127]", contracting("1", "0"), False),
        ("f32[128,512]", "f32[512,128]", "f32[128,128]", contracting("1", "0"), False),
        ("f32[2,128,512]", "f32[2,512,128]", "f32[2,128,128]", contracting("2", "1", "0"), True),
        # Contracted in other orders; no dimension whose elements lie side by side.
        ("f32[256,4,128]", "f32[128,4,128]", "f32[256,128]", contracting("1,2", "1,0"), False),
        ("f32[256,512,2]", "f32[512,256,2]", "f32[2,256,256]", contracting("1", "0", "2"), False),
        ("f32[256,<=512]", "f32[<=512,128]", "f32[256,128]", contracting("1", "0"), False),
    ],
)  # fmt: skip
def test_what_a_library_is_given(
    lhs: str, rhs: str, result: str, numbers: str, is_taken: bool
) -> None:
    assert (found(lhs, rhs, result, numbers) is not None) == is_taken


def test_exact_numerics_and_other_targets_have_none() -> None:
    words = "f32[512,512]", "f32[512,512]", "f32[512,512]", contracting("1", "0")
    assert found(*words) is not None
    for settings in (replace(FAST, numerics=Numerics.EXACT), launched(Numerics.FAST),
                     Settings(Numerics.FAST)):  # fmt: skip
        assert found(*words, settings) is None


def test_strides_are_those_of_the_elements() -> None:
    """Strides address every element of both factors, for every order of their dimensions."""
    settings, seen = replace(FAST, library_side=2), 0
    orders = ["bmk", "bkm", "mbk", "kbm", "mkb", "kmb"]
    sizes = {"b": 3, "m": 4, "k": 5, "n": 6}
    for left in orders:
        for right in (order.replace("m", "n") for order in orders):
            dims = [",".join(str(sizes[d]) for d in order) for order in (left, right)]
            numbers = (
                f"lhs_contracting_dims={{{left.index('k')}}},"
                f"rhs_contracting_dims={{{right.index('k')}}},"
                f"lhs_batch_dims={{{left.index('b')}}}, rhs_batch_dims={{{right.index('b')}}}"
            )
            product = found(f"f32[{dims[0]}]", f"f32[{dims[1]}]", "f32[3,4,6]", numbers, settings)
            is_dense = left[-1] != "b" and right[-1] != "b"
            assert (product is not None) == is_dense
            if product is None:
                continue
            seen += 1
            for order, factor in ((left, product.lhs), (right, product.rhs)):
                of_lines = next(d for d in order if d not in "bk")
                line, step = (1, factor.pitch)[:: -1 if factor.is_along_k else 1]
                at = np.arange(np.prod([sizes[d] for d in order])).reshape(
                    [sizes[d] for d in order]
                )
                index = np.indices(at.shape)
                steps = {"b": factor.batch_stride, of_lines: line, "k": step}
                expected = sum(index[n] * steps[d] for n, d in enumerate(order))
                assert np.array_equal(at, expected), (left, right)
    assert seen == 16


def test_drawn_kernels_of_more_than_a_dot_are_none() -> None:
    settings = replace(FAST, library_side=1)
    for module in examples(program, 60, "products"):
        for computation in module.computations:
            others = [i for i in computation.instructions if i.opcode != "parameter"]
            if matrix_product(computation, settings) is not None:
                assert [i.opcode for i in others] == ["dot"]
