"""Evaluate a program literally: each instruction as written, in the type and order written.

The definition of this project rounds a sum once. A compiler that follows the text adds one element
after the other, the init first, and rounds each partial sum to the type written, f16 and bf16 too.
Whatever a budget allows, that is legal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from hlo.module import Module
from hlo.types import C64, C128, F32, F64, ElementType
from hlo.values import Array
from hlo.walk import Callee, column
from interp.envelope.sums_in_order import ordered_addition
from interp.evaluator import Evaluation
from interp.exact.conversion import converted, type_of
from interp.exact.matrix_products import products_by
from interp.exact.sums import component_type
from interp.ops.elementwise import add, multiply
from interp.values import Value

_FOLDS = {
    "reduce": "to_apply",
    "reduce_window": "to_apply",
    "scatter": "to_apply",
    "select_and_scatter": "scatter",
}


_WHOLES = {F32: C64, F64: C128}


def _in_order(callee: Callee[Value]) -> Callee[Value]:
    return ordered_addition(callee) if callee.monoid == "add" else callee


def _product(lhs: Array, rhs: Array, element_type: ElementType) -> Array | None:
    """Multiply matrices [b, m, k] and [b, k, n], rounding each product and each partial sum to a
    type that has all numbers of the factors and of the result."""
    if not element_type.is_inexact:
        return None
    if not (np.isfinite(lhs).all() and np.isfinite(rhs).all()):
        return None  # padding that meets an infinity or a NaN is no factor
    factors = type_of(lhs)
    if type_of(rhs) is not factors or not factors.is_inexact:
        return None  # of mixed types, and of integers: what is rounded first, the text does not say
    widest = _with_all_numbers(factors, element_type)
    left, right = converted(lhs, widest), converted(rhs, widest)
    total = np.zeros((*lhs.shape[:2], rhs.shape[2]), widest.numpy)
    for k in range(lhs.shape[2]):
        rows, columns = np.broadcast_arrays(left[:, :, k, None], right[:, k, None, :])
        total = add(total, multiply(rows, columns))
    return converted(total, element_type)


def _with_all_numbers(one: ElementType, other: ElementType) -> ElementType:
    """Find a type that has all numbers of two types. Neither of two narrow floats has those of the
    other, nor f64 those of c64 and vice versa."""
    if one is other:
        return one
    parts = [component_type(x) if x.is_complex else x for x in (one, other)]
    widest = max(F32, *parts, key=lambda x: x.bits)
    return _WHOLES[widest] if one.is_complex or other.is_complex else widest


class Literal:
    """Runs programs literally."""

    def __init__(self) -> None:
        self._ops = dict(column("interp.ops"))
        for name, attribute in _FOLDS.items():
            op = self._ops[name]
            self._ops[name] = replace(op, function=_folding(op.function, attribute))

    def __call__(
        self, module: Module, *arguments: Value, seed: int = 0, fuel: int | None = None
    ) -> Value:
        with products_by(_product):
            return Evaluation(module, fuel, ops=self._ops).result(arguments, seed)


def _folding(function: Callable[..., Any], attribute: str) -> Callable[..., Any]:
    def fold(*operands: Any, **attributes: Any) -> Any:
        attributes[attribute] = _in_order(attributes[attribute])
        return function(*operands, **attributes)

    return fold
