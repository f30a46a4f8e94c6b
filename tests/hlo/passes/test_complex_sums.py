"""Sums and products of complex numbers by components are what they were, but for roundings."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
import interp
from hlo.module import Module
from hlo.passes.complex_functions.products import complex_products
from hlo.passes.complex_functions.sums import complex_sums
from hlo.values import Array

_ADD = """HloModule m
add {{
  a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT r = {t}[] add(a, b)
}}
ENTRY e {{
"""


def _module(element_type: str, lines: str) -> Module:
    return hlo.parse(_ADD.format(t=element_type) + lines.replace("T[", f"{element_type}[") + "}")


def _whole(*dims: int) -> Array:
    """Return complex numbers of small integers, whose sums no order rounds."""
    real, imag = np.random.default_rng(3).integers(-9, 10, (2, *dims))
    return np.asarray(real + 1j * imag)


SUMS = {
    "all": "p = T[6,5] parameter(0)\n  z = T[] constant((1, -2))\n"
    "  ROOT r = T[] reduce(p, z), dimensions={0,1}, to_apply=add\n",
    "rows": "p = T[6,5] parameter(0)\n  z = T[] constant((0, 0))\n"
    "  ROOT r = T[6] reduce(p, z), dimensions={1}, to_apply=add\n",
    "nothing": "p = T[6,0] parameter(0)\n  z = T[] constant((3, 1))\n"
    "  ROOT r = T[6] reduce(p, z), dimensions={1}, to_apply=add\n",
    "cumulative": "p = T[4,40] parameter(0)\n  z = T[] constant((0, 0))\n"
    "  ROOT r = T[4,40] reduce-window(p, z), window={size=1x40 pad=0_0x39_0}, to_apply=add\n",
}


@pytest.mark.parametrize("element_type", ["c64", "c128"])
@pytest.mark.parametrize("name", SUMS)
def test_a_sum_is_two(name: str, element_type: str) -> None:
    module = _module(element_type, SUMS[name])
    changed = complex_sums(module)
    hlo.verify(changed)
    root = changed.entry.root_instruction
    assert root.opcode == "complex"
    operand = _whole(*module.entry.parameters[0].shape.dims)  # type: ignore[union-attr]
    operand = operand.astype(module.entry.parameters[0].shape.element_type.numpy)  # type: ignore[union-attr]
    assert np.array_equal(interp.evaluate(changed, operand), interp.evaluate(module, operand))


KEPT = {
    "a short window": "p = T[8] parameter(0)\n  z = T[] constant((0, 0))\n"
    "  ROOT r = T[8] reduce-window(p, z), window={size=3 pad=1_1}, to_apply=add\n",
    "a bounded array": "p = T[<=8] parameter(0)\n  z = T[] constant((0, 0))\n"
    "  ROOT r = T[] reduce(p, z), dimensions={0}, to_apply=add\n",
    "a matrix": "p = T[8,4] parameter(0)\n  q = T[4,3] parameter(1)\n"
    "  ROOT r = T[8,3] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n",
    "batches behind": "p = T[8,4] parameter(0)\n  q = T[8,4] parameter(1)\n"
    "  ROOT r = T[4] dot(p, q), lhs_batch_dims={1}, rhs_batch_dims={1},"
    " lhs_contracting_dims={0}, rhs_contracting_dims={0}\n",
}


@pytest.mark.parametrize("name", KEPT)
def test_others_stay(name: str) -> None:
    module = _module("c64", KEPT[name])
    assert complex_sums(complex_products(module)) == module


# Shapes and dimensions of dots without free dimensions on one side, or on both.
PRODUCTS = {
    "vectors": ("9", "9", "", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    "matrix and vector": ("5,9", "9", "5", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "vector and matrix": ("9", "9,5", "5", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    "transposed": ("9,5", "9", "5", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    "a batch": (
        "3,9,4", "3,9", "3,4",
        "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1},"
        " rhs_contracting_dims={1}",
    ),
    "two sums in another order": (
        "4,5,6", "6,4", "5", "lhs_contracting_dims={0,2}, rhs_contracting_dims={1,0}",
    ),
    "nothing": ("5,0", "0", "5", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
}  # fmt: skip


def _product(name: str, element_type: str) -> tuple[Module, tuple[Array, Array]]:
    left, right, result, dims = PRODUCTS[name]
    lines = f"p = T[{left}] parameter(0)\n  q = T[{right}] parameter(1)\n"
    module = _module(element_type, f"{lines}  ROOT r = T[{result}] dot(p, q), {dims}\n")
    dtype = np.complex64 if element_type == "c64" else np.complex128
    sizes = (tuple(map(int, dims.split(","))) for dims in (left, right))
    p, q = (_whole(*dims).astype(dtype) for dims in sizes)
    return module, (p, q)


@pytest.mark.parametrize("element_type", ["c64", "c128"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_with_a_vector_is_a_sum(name: str, element_type: str) -> None:
    module, operands = _product(name, element_type)
    changed = complex_products(module)
    hlo.verify(changed)
    assert changed.entry.root_instruction.opcode == "reduce"
    assert np.array_equal(interp.evaluate(changed, *operands), interp.evaluate(module, *operands))


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PRODUCTS)
def test_so_says_the_c(name: str) -> None:
    module, operands = _product(name, "c64")
    found = backend_c.compile(module, numerics="fast")(*operands)
    assert np.array_equal(found, interp.evaluate(module, *operands))
