"""Draw array values that reveal bugs: distinct numbers of every magnitude, and special values."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np

from fuzz.draw.choices import Choices
from fuzz.draw.distinct_values import distinct
from hlo.errors import ArgumentError
from hlo.module import Module
from hlo.types import C64, F32, F64, ArrayShape, ElementType, Shape, TupleShape

_SEEDS = 1 << 16
_SPREAD = 8  # one element in so many, at most, is a special value


def arguments(choices: Choices, module: Module) -> tuple[object, ...]:
    """Draw arguments for the entry computation: mostly distinct numbers, of any magnitude or near
    1; among them, or alone, NaN, ±0, ±inf, subnormals, extremes and arbitrary bits."""
    return tuple(_argument(choices, parameter.shape) for parameter in module.entry.parameters)


def _argument(choices: Choices, shape: Shape) -> object:
    if isinstance(shape, TupleShape):
        return tuple(_argument(choices, element) for element in shape.elements)
    if not shape.element_type.is_array:
        raise ArgumentError(f"a parameter {shape} cannot be drawn")
    return array(choices, shape)


def array(choices: Choices, shape: ArrayShape) -> np.ndarray:
    """Draw an array, by few choices, so that it is cheap to draw and to shrink: distinct numbers of
    a drawn seed, half of the time with a few drawn numbers among them, or else only a few drawn
    numbers, repeated. Bounded dimensions get any size up to their bound."""
    if shape.is_dynamic:
        sizes = zip(shape.dims, shape.dynamic, strict=True)
        dims = tuple(choices.integer(0, size) if dynamic else size for size, dynamic in sizes)
        shape = ArrayShape(shape.element_type, dims)
    if shape.elements < 2 or not choices.integer(0, 3):
        return _strewn(choices, shape)
    kind, seed = choices.integer(0, 3), choices.integer(0, _SEEDS - 1)
    rng = np.random.default_rng(seed)
    found = distinct(rng, shape.element_type, shape.elements, kind)
    if choices.boolean():
        drawn = choices.several(lambda: scalar(choices, shape.element_type), 1, 4)
        special = np.stack(drawn)[: max(1, shape.elements // _SPREAD)]
        found[rng.permutation(shape.elements)[: len(special)]] = special
    return found.reshape(shape.dims)


def _strewn(choices: Choices, shape: ArrayShape) -> np.ndarray:
    palette = np.stack(choices.several(lambda: scalar(choices, shape.element_type), 1, 6))
    seed = choices.integer(0, _SEEDS - 1) if len(palette) > 1 and shape.elements > 1 else 0
    # Each element is a drawn number of its own then, and shrinks alone.
    if shape.elements <= len(palette):
        return palette[: shape.elements].reshape(shape.dims)
    chosen = np.random.default_rng(seed).integers(0, len(palette), shape.dims)
    return np.asarray(palette[chosen])


def scalar(choices: Choices, element_type: ElementType) -> np.ndarray:
    """Draw a number as an array of rank 0: simple, notable, with arbitrary bits, or of a magnitude
    near 1."""
    if element_type.kind == "pred":
        return np.array(choices.boolean(), element_type.numpy)
    if element_type.is_complex:
        part = F32 if element_type is C64 else F64
        return _complex(element_type, scalar(choices, part), scalar(choices, part))
    kind = choices.choice(("simple", "notable", "any", "near one"))
    if kind == "simple":
        return _number(element_type, choices.integer(0, 4))
    if kind == "notable":
        return choices.choice(notable(element_type))
    # Of 8 bits and fewer distinct() would give any number, too, at the cost of shuffling them all.
    if kind == "near one" and element_type.bits > 8:
        rng = np.random.default_rng(choices.integer(0, _SEEDS - 1))
        return distinct(rng, element_type, 1, 0).reshape(())
    return from_bits(element_type, choices.integer(0, 2**element_type.bits - 1))


def from_bits(element_type: ElementType, bits: int) -> np.ndarray:
    """Reinterpret bits as a number of a type (no complex one). Types below 8 bits use the low bits
    of a byte."""
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
    """Return the numbers at the edges of a type's arithmetic; for types other than pred and
    complex."""
    numbers = _floats(element_type) if element_type.is_float else _integers(element_type)
    return tuple(_number(element_type, number) for number in numbers)


def _integers(element_type: ElementType) -> list[object]:
    """List the ends of the range, the width (a shift by it), and powers of two with their
    neighbours."""
    bits, signed = element_type.bits, element_type.kind == "signed"
    low, high = -(2 ** (bits - 1)) if signed else 0, 2 ** (bits - signed) - 1
    around = [bits, bits - 1, bits + 1, 10, high // 2, high // 2 + 1, low // 2, 2 ** (bits // 2)]
    numbers = [1, -1, 2, -2, high, low, high - 1, low + 1, *around]
    return list(dict.fromkeys(number for number in numbers if low <= number <= high))


def _floats(element_type: ElementType) -> list[object]:
    """List zeros, infinities, NaN, the ends of every range, midpoints between neighbours of
    narrower types and of integers, and thresholds of over- and underflow of functions, of squares,
    of products of few factors and of reciprocals."""
    limits = ml_dtypes.finfo(element_type.numpy)  # type: ignore[no-untyped-call]
    one, eps = np.float64(1), np.float64(limits.eps)
    numbers: list[object] = [-0.0, -1.0, 0.5, 1.5, 2.5, -0.5, 1 / 3, np.inf, -np.inf]
    numbers += [np.nan] * 4  # as many as there are ways to lose it: comparisons, folds, conversions
    numbers += [limits.smallest_subnormal, limits.smallest_normal, limits.max, limits.min]
    # The last is the neighbour of 0.5 for which floor(x + 0.5) rounds up to 1.
    numbers += [-limits.smallest_subnormal, one + eps, one - eps / 2, 0.5 - eps / 4]
    # Halfway from 1 to the next number of f4e2m1, f8e5m2, f8e4m3, f8e3m4, bf16, f16 and f32: a tie
    # goes down, to the even 1. After three halves of a step it goes up.
    numbers += [one + 2.0**-n for n in (2, 3, 4, 5, 8, 11, 24)]
    numbers += [one + 3 * 2.0**-n for n in (8, 11, 24)]
    # exp in f32 and f64 is nearly infinite, or a subnormal; ties at the ends of 8-bit integers; the
    # largest f8e4m3fn and f8e5m2, each with the tie above it.
    numbers += [88.7, -103.9, 709.7, -745.1, 127.5, -128.5, 255.5, 448.0, 464.0, 57344.0, 61440.0]
    most, least = np.float64(limits.max), np.float64(limits.smallest_normal)
    # Squares overflow or just do not; then sums of two and of four do, products of four and of two.
    numbers += [
        most**0.5 * 1.25,
        most**0.5 * 0.75,
        most * 0.75,
        most * 0.3,
        most**0.3,
        -(most**0.8),
    ]
    # Squares are subnormal or just not; then a subnormal, a number whose half is one, and a number
    # of which the product of four is one.
    numbers += [least**0.5 * 1.25, least**0.5 * 0.75, least * 0.75, least * 1.5, least**0.3]
    numbers += [eps, eps**2, -(eps**0.5), -0.4, -0.375]
    # The largest f16 and the tie above it, which becomes infinity; then where f32 and f64 skip
    # integers, and the ends of 32 and 64-bit ones.
    numbers += [65504.0, 65520.0, 2.0**24 + 1, 2.0**31, -(2.0**31), 2.0**53 + 2, 2.0**63, 2.0**64]
    return numbers
