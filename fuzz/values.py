"""Strategies of array values, with the numbers that find bugs."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from hlo.errors import ArgumentError
from hlo.module import Module
from hlo.types import C64, F32, F64, ArrayShape, ElementType, Shape, TupleShape


def arguments(module: Module) -> st.SearchStrategy[tuple[object, ...]]:
    """Arguments for the entry computation: NaN, ±0, ±inf, subnormals, extremes, any bits."""
    shapes = [parameter.shape for parameter in module.entry.parameters]
    return st.tuples(*map(_argument, shapes))


def _argument(shape: Shape) -> st.SearchStrategy[object]:
    if isinstance(shape, TupleShape):
        return st.tuples(*map(_argument, shape.elements))
    if not shape.element_type.is_array:
        raise ArgumentError(f"a parameter {shape} cannot be drawn")
    return arrays(shape)


@st.composite
def arrays(draw: st.DrawFn, shape: ArrayShape) -> np.ndarray:
    """A few numbers of the type, strewn by a drawn seed: cheap to draw and to shrink. Bounded
    dimensions are of any size up to their bound."""
    if shape.is_dynamic:
        sizes = zip(shape.dims, shape.dynamic, strict=True)
        dims = tuple(draw(st.integers(0, size)) if dynamic else size for size, dynamic in sizes)
        shape = ArrayShape(shape.element_type, dims)
    numbers = draw(_palettes(shape.element_type))
    palette = np.stack(numbers)
    seed = draw(st.integers(0, 255)) if len(palette) > 1 and shape.elements > 1 else 0
    if shape.elements <= len(palette):
        return palette[: shape.elements].reshape(shape.dims)
    chosen = np.random.default_rng(seed).integers(0, len(palette), shape.dims)
    return np.asarray(palette[chosen])


@cache
def _palettes(element_type: ElementType) -> st.SearchStrategy[list[np.ndarray]]:
    return st.lists(scalars(element_type), min_size=1, max_size=6)


@cache
def scalars(element_type: ElementType) -> st.SearchStrategy[np.ndarray]:
    """Numbers of a type as arrays of rank 0: simple ones, notable ones, any bits."""
    if element_type.kind == "pred":
        return st.booleans().map(lambda value: np.array(value, element_type.numpy))
    if element_type.is_complex:
        part = scalars(F32 if element_type is C64 else F64)
        return st.tuples(part, part).map(lambda pair: _complex(element_type, *pair))
    simple = st.integers(0, 4).map(lambda value: _number(element_type, value))
    edges = st.sampled_from(notable(element_type))
    anything = st.integers(0, 2**element_type.bits - 1)
    return st.one_of(simple, edges, anything.map(lambda bits: from_bits(element_type, bits)))


def from_bits(element_type: ElementType, bits: int) -> np.ndarray:
    """The number of a type, no complex one, with these bits. Types of less than 8 bits lie in the
    low bits of a byte."""
    dtype = element_type.numpy
    return np.array(bits, f"u{dtype.itemsize}").view(dtype)


def _number(element_type: ElementType, value: object) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.array(value).astype(element_type.numpy)


def _complex(element_type: ElementType, real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    result = np.zeros((), element_type.numpy)
    result.real, result.imag = real, imag
    return result


@cache
def notable(element_type: ElementType) -> tuple[np.ndarray, ...]:
    """Numbers of a type, neither pred nor complex, where its arithmetic has edges."""
    numbers = _floats(element_type) if element_type.is_float else _integers(element_type)
    return tuple(_number(element_type, number) for number in numbers)


def _integers(element_type: ElementType) -> list[object]:
    """The ends of the range, the width (a shift by it), and powers of two with their neighbours."""
    bits, signed = element_type.bits, element_type.kind == "signed"
    low, high = -(2 ** (bits - 1)) if signed else 0, 2 ** (bits - signed) - 1
    around = [bits, bits - 1, bits + 1, 10, high // 2, high // 2 + 1, low // 2, 2 ** (bits // 2)]
    numbers = [1, -1, 2, -2, high, low, high - 1, low + 1, *around]
    return list(dict.fromkeys(number for number in numbers if low <= number <= high))


def _floats(element_type: ElementType) -> list[object]:
    """Zeros, infinities, NaN, the ends of every range, middles between neighbours of narrower types
    and of integers, and where functions over- or underflow."""
    limits = ml_dtypes.finfo(element_type.numpy)  # type: ignore[no-untyped-call]
    one, eps = np.float64(1), np.float64(limits.eps)
    numbers: list[object] = [-0.0, -1.0, 0.5, 1.5, 2.5, -0.5, 1 / 3, np.nan, np.inf, -np.inf]
    numbers += [limits.smallest_subnormal, limits.smallest_normal, limits.max, limits.min]
    numbers += [-limits.smallest_subnormal, one + eps, one - eps / 2, 0.5 - eps / 4]
    numbers += [one + 2.0**-n for n in (2, 3, 4, 5, 8, 11, 24)]
    numbers += [one + 3 * 2.0**-n for n in (8, 11, 24)]
    numbers += [88.7, -103.9, 709.7, -745.1, 127.5, -128.5, 255.5, 448.0, 464.0, 57344.0, 61440.0]
    numbers += [65504.0, 65520.0, 2.0**24 + 1, 2.0**31, -(2.0**31), 2.0**53 + 2, 2.0**63, 2.0**64]
    return numbers
