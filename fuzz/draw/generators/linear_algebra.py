"""Generate Cholesky factors, triangular systems and Fourier transforms."""

from __future__ import annotations

from fuzz.draw.builder import Builder, Generator
from fuzz.draw.shapes import MOST_ELEMENTS, Accepts, nonzero
from hlo.attributes import Attribute
from hlo.types import C64, C128, F32, F64, PARTS, S8, ArrayShape

_COMPLEX = {F32: C64, F64: C128}


def cholesky(builder: Builder, shape: ArrayShape) -> str:
    """Draw a factor of any matrix, or of one that is mostly positive definite."""
    operand = builder.value(shape) if builder.boolean() else positive(builder, shape)
    lower = {"lower": True} if builder.boolean() else {}
    return builder.emit("cholesky", shape, operand, **lower)


def positive(builder: Builder, shape: ArrayShape) -> str:
    """Draw matrices that mostly have a Cholesky factor: products of small integers with their
    transpose."""
    # S times its transpose is positive definite unless S is singular, or rounding makes it so.
    small = builder.emit("convert", shape, builder.value(ArrayShape(S8, shape.dims)))
    batch, last = tuple(range(shape.rank - 2)), (shape.rank - 1,)
    return builder.emit(
        "dot", shape, small, small, lhs_batch_dims=batch, rhs_batch_dims=batch,
        lhs_contracting_dims=last, rhs_contracting_dims=last,
    )  # fmt: skip


def triangular_solve(builder: Builder, shape: ArrayShape) -> str:
    left_side, lower, unit_diagonal = (builder.boolean() for _ in range(3))
    size = shape.dims[-2 if left_side else -1]
    a = builder.value(ArrayShape(shape.element_type, (*shape.dims[:-2], size, size)))
    transpose_a = builder.choice(("", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))
    flags = {"left_side": left_side, "lower": lower, "unit_diagonal": unit_diagonal}
    chosen: dict[str, Attribute] = {name: True for name, flag in flags.items() if flag}
    if transpose_a:
        chosen["transpose_a"] = transpose_a
    return builder.emit("triangular-solve", shape, a, builder.value(shape), **chosen)


def fft(builder: Builder, shape: ArrayShape) -> str:
    """Draw a transform of one to three dimensions; the types of operand and result determine its
    kind."""
    rank = builder.integer(1, min(3, shape.rank))
    *outer, last = shape.dims
    lengths, dims, element_type = shape.dims[shape.rank - rank :], shape.dims, shape.element_type
    if element_type in _COMPLEX:
        kind, element_type = "IRFFT", _COMPLEX[element_type]
        dims = (*outer, last // 2 + 1 if last else 0)
    else:
        kind = builder.choice(("FFT", "IFFT", *["RFFT"] * (last != 0)))
        if kind == "RFFT":
            # n real numbers have n // 2 + 1 results: n is 2 (last - 1), or one more.
            last = max(1, 2 * (last - 1) + builder.integer(0, 1))
            element_type, dims = PARTS[element_type], (*outer, last)
            lengths = (*lengths[:-1], last)
    operand = builder.value(ArrayShape(element_type, dims))
    return builder.emit("fft", shape, operand, fft_type=kind, fft_length=lengths)


def _is_of_matrices(shape: ArrayShape) -> bool:
    return shape.rank >= 2 and shape.is_inexact


def has_small_systems(shape: ArrayShape) -> bool:
    """Return whether triangular systems with this solution stay small on either side."""
    last = max(shape.dims[-2:], default=0)
    small = nonzero((*shape.dims[:-2], last, last)) <= MOST_ELEMENTS
    return _is_of_matrices(shape) and small


def _is_square(shape: ArrayShape) -> bool:
    return _is_of_matrices(shape) and shape.dims[-1] == shape.dims[-2]


GENERATORS: dict[str, tuple[Generator, Accepts]] = {
    "cholesky": (cholesky, _is_square),
    "triangular-solve": (triangular_solve, has_small_systems),
    "fft": (fft, lambda shape: shape.rank > 0 and shape.element_type in {**_COMPLEX, **PARTS}),
}
