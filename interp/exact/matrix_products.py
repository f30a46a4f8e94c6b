"""Multiply matrices of any element types, for dot, convolution, ragged-dot and scaled-dot.

Factors keep their own types, so that products and sums are exact; only the sum is rounded. To a
result type of another kind (an integer or pred for floats, pred for integers) the sum is converted
from the wider type of the two factors, as XLA does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from hlo.types import ElementType
from hlo.values import Array
from interp.exact.conversion import converted, type_of
from interp.exact.dots import dot_exact
from interp.exact.integer_dots import dot_integers, dot_pred
from interp.exact.sums import component_type

_Product = Callable[[Array, Array, ElementType], Array | None]
_OTHER: ContextVar[_Product | None] = ContextVar("other", default=None)
_KINDS = {"pred": 0, "unsigned": 1, "signed": 1, "float": 2, "complex": 3}


def matrix_product(
    lhs: Array, rhs: Array, element_type: ElementType, present: Array | None = None
) -> Array:
    """Multiply lhs[b, m, k] and rhs[b, k, n] in ``element_type``. Only elements of lhs in the mask
    ``present`` are factors."""
    common = max(type_of(lhs), type_of(rhs), key=_width)
    if present is not None:
        known = lhs.astype(np.float32) if type_of(lhs).name == "f8e8m0fnu" else lhs  # has no zero
        lhs = np.where(present, known, np.zeros((), known.dtype))
    return _product(lhs, rhs, element_type, common, present)


def _product(
    lhs: Array, rhs: Array, element_type: ElementType, common: ElementType, present: Array | None
) -> Array:
    """Multiply factors of which ``common`` is the wider type; elements of lhs beside the mask are
    0."""
    other = _OTHER.get()
    if other is not None and (product := other(lhs, rhs, element_type)) is not None:
        return product
    if element_type.kind == "pred" and common.kind == "pred":
        return dot_pred(lhs, rhs)
    if element_type.is_integer and not common.is_inexact:
        return dot_integers(lhs, rhs, element_type)
    if element_type.is_inexact:
        return _dot(lhs, rhs, element_type, present)
    wide = component_type(common) if common.is_complex else common
    return converted(_product(lhs, rhs, wide, common, present), element_type)


@contextmanager
def products_by(function: _Product) -> Iterator[None]:
    """Replace, within a block, how all ops multiply matrices [b, m, k] and [b, k, n]: by
    ``function`` of both and the element type, unless it returns None."""
    token = _OTHER.set(function)
    try:
        yield
    finally:
        _OTHER.reset(token)


def _width(element_type: ElementType) -> tuple[int, int]:
    return _KINDS[element_type.kind], element_type.bits


def _dot(lhs: Array, rhs: Array, element_type: ElementType, present: Array | None) -> Array:
    """Compute the exact dot of factors that float64 holds. A 64-bit integer becomes two of them,
    concatenated along the depth."""
    if _is_long(lhs):
        present = None if present is None else np.concatenate((present, present), axis=2)
        halves = np.concatenate(_halves(lhs), axis=2)
        return _dot(halves, np.concatenate((rhs, rhs), axis=1), element_type, present)
    if _is_long(rhs):
        present = None if present is None else np.concatenate((present, present), axis=2)
        halves = np.concatenate(_halves(rhs), axis=1)
        return _dot(np.concatenate((lhs, lhs), axis=2), halves, element_type, present)
    return dot_exact(lhs, rhs, element_type, present)


def _is_long(values: Array) -> bool:
    return values.dtype.kind in "iu" and values.dtype.itemsize == 8


def _halves(values: Array) -> tuple[Array, Array]:
    """Split 64-bit integers into two float64: a multiple of 2**32 and the rest, whose sum they
    are."""
    low = values & values.dtype.type(0xFFFFFFFF)
    return (values - low).astype(np.float64), low.astype(np.float64)
