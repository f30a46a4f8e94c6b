"""Strategies of array values, with the numbers that find bugs."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from hlo.errors import ArgumentError
from hlo.module import Module
from hlo.types import ArrayShape, ElementType


def arguments(module: Module) -> st.SearchStrategy[tuple[np.ndarray, ...]]:
    """Arguments for the entry computation: NaN, ±0, ±inf, subnormals, extremes, any bits."""
    shapes = [parameter.shape for parameter in module.entry.parameters]
    return st.tuples(*map(_parameter, shapes))


def _parameter(shape: object) -> st.SearchStrategy[np.ndarray]:
    if not isinstance(shape, ArrayShape) or not shape.element_type.is_array:
        raise ArgumentError(f"a parameter {shape} cannot be drawn")
    return arrays(shape)


@st.composite
def arrays(draw: st.DrawFn, shape: ArrayShape) -> np.ndarray:
    """A few numbers of the type, strewn by a drawn seed: cheap to draw and to shrink."""
    numbers = draw(st.lists(scalars(shape.element_type), min_size=1, max_size=6))
    palette = np.stack(numbers)
    seed = draw(st.integers(0, 255)) if len(palette) > 1 and shape.elements > 1 else 0
    if shape.elements <= len(palette):
        return palette[: shape.elements].reshape(shape.dims)
    chosen = np.random.default_rng(seed).integers(0, len(palette), shape.dims)
    return np.asarray(palette[chosen])


def scalars(element_type: ElementType) -> st.SearchStrategy[np.ndarray]:
    """Numbers of a type as arrays of rank 0: simple ones, notable ones, any bits."""
    dtype, bits = element_type.numpy, element_type.bits
    if element_type.kind == "pred":
        return st.booleans().map(lambda value: np.array(value, dtype))
    simple = st.integers(0, 4).map(lambda value: np.array(value).astype(dtype))
    notable = st.sampled_from(_notable(element_type))
    unsigned = np.dtype(f"u{bits // 8}")
    anything = st.integers(0, 2**bits - 1).map(lambda value: np.array(value, unsigned).view(dtype))
    return st.one_of(simple, notable, anything)


@cache
def _notable(element_type: ElementType) -> tuple[np.ndarray, ...]:
    dtype = element_type.numpy
    if not element_type.is_float:
        info = np.iinfo(dtype)  # type: ignore[type-var]
        numbers: list[object] = [1, 2, info.max, info.min, info.max - 1, info.min + 1, info.bits]
    else:
        limits = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
        one = np.array(1, dtype)
        numbers = [-0.0, -1.0, 0.5, 1.5, 1 / 3, np.nan, np.inf, -np.inf, one + limits.eps]
        numbers += [limits.smallest_subnormal, limits.smallest_normal, limits.max, limits.min]
        numbers += [-limits.smallest_subnormal, 88.7, -103.9, 709.7, 65504.0, 2.0**31, 2.0**63]
    with np.errstate(over="ignore"):
        return tuple(np.array(number).astype(dtype) for number in numbers)
