"""Sums of products are one operation in fast numerics, where nothing else reads the product."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import has_c_compiler

import backend_c
import hlo
from backend_c.ir.fused_products import with_fused_products
from backend_c.ir.loop_ir import Apply, Array, Constant, Let, Load, Statement, Store, Variable
from hlo.types import BF16, F32, S64, ElementType

ZERO = Constant(S64, 0)


def variable(name: str, element_type: ElementType = F32) -> Variable:
    return Variable(element_type, name)


def operation(name: str, *operands: Variable) -> Apply:
    return Apply(name, operands, operands[0].type)


A, B, C = map(variable, "abc")
PRODUCT = variable("p")
RESULT = Array("r", F32, 4, mutable=True)


def stored(*values: Apply) -> tuple[Statement, ...]:
    multiply = Let(PRODUCT, operation("multiply", A, B))
    return (multiply, *(Store(RESULT, ZERO, value) for value in values))


@pytest.mark.parametrize(
    ("value", "fused"),
    [
        (operation("add", PRODUCT, C), Apply("multiply-add", (A, B, C), F32)),
        (operation("add", C, PRODUCT), Apply("multiply-add", (A, B, C), F32)),
        (
            operation("subtract", PRODUCT, C),
            Apply("multiply-add", (A, B, operation("negate", C)), F32),
        ),
        (
            operation("subtract", C, PRODUCT),
            Apply("multiply-add", (operation("negate", A), B, C), F32),
        ),
    ],
)
def test_sums_of_products(value: Apply, fused: Apply) -> None:
    assert with_fused_products(stored(value)) == (Store(RESULT, ZERO, fused),)


def test_a_product_that_is_read_twice_stays() -> None:
    body = stored(operation("add", PRODUCT, C), operation("multiply", PRODUCT, C))
    assert with_fused_products(body) == body


def test_a_product_of_what_may_change_stays() -> None:
    read = Let(PRODUCT, Apply("multiply", (Load(RESULT, ZERO), B), F32))
    body = (read, Store(RESULT, ZERO, B), Store(RESULT, ZERO, operation("add", PRODUCT, C)))
    assert with_fused_products(body) == body


def test_narrow_products_stay() -> None:
    """They are rounded to their type, or kept in f32, which is another expression."""
    a, b, c, p = (variable(name, BF16) for name in "abcp")
    body = (Let(p, operation("multiply", a, b)), Store(RESULT, ZERO, operation("add", p, c)))
    assert with_fused_products(body) == body


@pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")
def test_one_rounding_where_the_processor_has_that() -> None:
    """(1 + 2^-12)^2 - (1 + 2^-11) is 2^-24, which two roundings lose; exact numerics have two."""
    text = """HloModule m
ENTRY e {
  x = f32[64] parameter(0)
  y = f32[64] parameter(1)
  p = f32[64] multiply(x, x)
  ROOT r = f32[64] subtract(p, y)
}"""
    x, y = np.full(64, 1 + 2.0**-12, np.float32), np.full(64, 1 + 2.0**-11, np.float32)
    module = hlo.parse(text)
    assert set(backend_c.compile(module, "exact")(x, y)) == {0}
    assert set(backend_c.compile(module, "fast")(x, y)) <= {np.float32(2.0**-24), 0}
    sources = [backend_c.emit(module, numerics=name)["unit_0.c"] for name in ("exact", "fast")]
    assert [b"hlo_fused_f32" in source for source in sources] == [False, True]
