"""Bugs of complex numbers, matrices, transforms, random bits and normalisations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hlo.values import Array
from interp.ops.elementwise import complex_
from interp.values import Value
from selftest.injection.bug import Call, Family, given, op, operand, result, swapped

_complex = Family("complex numbers")
_matrices = Family("linear algebra")
_random = Family("random bits")
_norms = Family("batch norm")


def _conjugated(value: Array) -> Array | None:
    return value.conj() if value.dtype.kind == "c" else None


def _exchanged(value: Array) -> Array | None:
    return complex_(value.imag, value.real) if value.dtype.kind == "c" else None


def _imaginary_lost(value: Array) -> Array | None:
    if value.dtype.kind != "c":
        return None
    return complex_(value.real, np.zeros_like(value.real))


def _product(change: Any) -> Any:
    """Make the bug of another formula for the product of complex numbers, of their components."""

    def wrong(call: Call) -> Value:
        a, b = call.operands
        if a.dtype.kind != "c":
            return None
        real, imag = change(a.real, a.imag, b.real, b.imag)
        return complex_(np.asarray(real), np.asarray(imag))

    return wrong


def _quotient(a: Array, b: Array, c: Array, d: Array) -> Any:
    scale = c * c + d * d
    return (a * c + b * d) / scale, (b * c - a * d) / scale


_FUNCTIONS = "exponential log sqrt sine cosine tanh power"

COMPLEX = (
    _complex("complex", "complex: imaginary part lost", lambda c: c(
        c.operands[0], np.zeros_like(c.operands[1]))),
    _complex("multiply", "multiply: product of imaginary parts missing", _product(
        lambda a, b, c, d: (a * c, a * d + b * c))),
    _complex("multiply", "multiply: product of imaginary parts added", _product(
        lambda a, b, c, d: (a * c + b * d, a * d + b * c))),
    _complex("multiply", "multiply: by components", _product(lambda a, b, c, d: (a * c, b * d))),
    _complex("divide", "divide: of complex numbers by components", _product(
        lambda a, b, c, d: (a / c, b / d))),
    _complex("divide", "divide: overflow of the squares", _product(_quotient)),
    _complex("divide", "divide: divisor conjugated", _product(
        lambda a, b, c, d: _quotient(a, b, c, -d))),
    *_complex.each("add subtract multiply divide " + _FUNCTIONS, "result conjugated",
                   result(_conjugated), "complex"),
    *_complex.each("exponential sqrt log tanh", "imaginary part lost", result(_imaginary_lost),
                   "complex"),
    *_complex.each("add multiply negate", "components exchanged", result(_exchanged), "complex"),
    _complex("abs", "abs: of complex numbers, squared", lambda c: (
        c.operands[0].real ** 2 + c.operands[0].imag ** 2), "complex"),
    _complex("abs", "abs: sqrt(x x + y y), which overflows", lambda c: np.sqrt(
        c.operands[0].real ** 2 + c.operands[0].imag ** 2), "complex"),
    _complex("abs", "abs: of the real part", lambda c: np.abs(c.operands[0].real), "complex"),
    _complex("sqrt", "sqrt: the other branch", result(np.negative), "complex"),
    _complex("log", "log: argument from 0 to 2 pi", result(lambda x: complex_(
        x.real, np.where(x.imag < 0, x.imag + x.real.dtype.type(2 * math.pi), x.imag))),
        "complex"),
    _complex("imag", "imag: negated", result(np.negative), "complex"),
    _complex("compare", "compare: real parts only", lambda c: op("compare")(
        c.operands[0].real, c.operands[1].real, direction=c.attributes["direction"]), "complex"),
)  # fmt: skip


def _other_triangle(call: Call) -> Value:
    """Leave the operand's values in the other triangle."""
    right, lower = call(), call.attributes.get("lower", False)
    mask = np.tril(np.ones(right.shape[-2:], np.bool_))
    return np.where(mask if lower else mask.T, right, call.operands[0])


def _diagonal(call: Call, change: Any) -> Value:
    right = np.array(call())
    diagonal = np.arange(right.shape[-1])
    right[..., diagonal, diagonal] = change(right[..., diagonal, diagonal])
    return right


def _flag(name: str) -> Any:
    return given(**{name: lambda flag: not flag})


def _transposed(call: Call) -> Value:
    value = call.operands[0]
    return call(np.ascontiguousarray(value.swapaxes(-1, -2)), *call.operands[1:])


def _scaled(change: Any) -> Any:
    """Make the bug of scaling a transform by a function of its number of points."""

    def wrong(call: Call) -> Value:
        right = call()
        points = math.prod(call.attributes["fft_length"])
        return (right * right.real.dtype.type(change(points))).astype(right.dtype)

    return wrong


def _of_kind(changes: dict[str, Any]) -> Any:
    def wrong(call: Call) -> Value:
        change = changes.get(call.attributes["fft_type"])
        return None if change is None else change(call)

    return wrong


def _other_way(call: Call) -> Value:
    kind = {"FFT": "IFFT", "IFFT": "FFT"}.get(call.attributes["fft_type"])
    return None if kind is None else call(fft_type=kind)


def _first_axis(call: Call) -> Value:
    """Transform along the first dimension, where it has the same length."""
    value, lengths = call.operands[0], call.attributes["fft_length"]
    if value.ndim < 2 or len(lengths) != 1 or value.shape[0] != value.shape[-1]:
        return None
    turned = call(np.ascontiguousarray(value.swapaxes(0, -1)))
    return turned.swapaxes(0, -1) if turned.shape == call().shape else None


def _bin(number: int) -> Any:
    def change(value: Array) -> Array | None:
        if value.ndim < 1 or value.shape[-1] < 2:
            return None
        changed = np.array(value)
        changed[..., number] = 0
        return changed

    return change


MATRICES = (
    _matrices("cholesky", "cholesky: lower for upper or the reverse",
              lambda c: np.ascontiguousarray(c().swapaxes(-1, -2).conj())),
    _matrices("cholesky", "cholesky: reads the other triangle", _transposed),
    _matrices("cholesky", "cholesky: other triangle not cleared", _other_triangle),
    _matrices("cholesky", "cholesky: square roots left out", lambda c: _diagonal(
        c, lambda d: d * d)),
    _matrices("cholesky", "cholesky: in f32 with errors of 1e-3", lambda c: c() * np.asarray(
        1.001).astype(c().dtype) if c.operands[0].dtype.kind in "fc" else None),
    _matrices("cholesky", "cholesky: no NaN where there is no factor", result(
        lambda x: np.where(np.isnan(x), np.zeros((), x.dtype), x))),
    _matrices("triangular-solve", "triangular-solve: the other triangle", _flag("lower")),
    _matrices("triangular-solve", "triangular-solve: unit diagonal or not",
              _flag("unit_diagonal")),
    _matrices("triangular-solve", "triangular-solve: transposed or not", given(
        transpose_a=lambda t: "TRANSPOSE" if t in (None, "", "NO_TRANSPOSE") else "NO_TRANSPOSE")),
    _matrices("triangular-solve", "triangular-solve: not conjugated", given(
        transpose_a=lambda t: "TRANSPOSE" if t == "ADJOINT" else None)),
    _matrices("triangular-solve", "triangular-solve: from the other side", lambda c: (
        c(left_side=not c.attributes.get("left_side", False))
        if c.operands[1].shape[-1] == c.operands[1].shape[-2] else None)),
    _matrices("triangular-solve", "triangular-solve: multiplies", lambda c: (
        np.matmul(c.operands[0], c.operands[1]) if c.attributes.get("left_side") else None)),
    _matrices("triangular-solve", "triangular-solve: the right side unchanged",
              lambda c: c.operands[1]),
    _matrices("fft", "fft: inverse not divided", _of_kind(dict.fromkeys(
        ("IFFT", "IRFFT"), _scaled(lambda n: n)))),
    _matrices("fft", "fft: forward divided", _of_kind(dict.fromkeys(
        ("FFT", "RFFT"), _scaled(lambda n: 1 / max(n, 1))))),
    _matrices("fft", "fft: divided by the square root",
              _scaled(lambda n: 1 / math.sqrt(max(n, 1)))),
    _matrices("fft", "fft: forward for inverse or the reverse", _other_way),
    _matrices("fft", "fft: result conjugated", result(_conjugated)),
    _matrices("fft", "fft: along the first dimension", _first_axis),
    _matrices("fft", "fft: first element of the result zero", result(_bin(0))),
    _matrices("fft", "fft: last element of the operand left out", operand(0, _bin(-1))),
    _matrices("fft", "fft: result rotated by half", result(
        lambda x: np.fft.fftshift(x, -1).astype(x.dtype))),
    _matrices("fft", "fft: error of 1e-3", _scaled(lambda n: 1.001)),
)  # fmt: skip


def _state(number: int, change: Any) -> Any:
    """Make the bug of changing one word of the random state."""

    def make(state: Array) -> Array | None:
        if number >= len(state):
            return None
        changed = np.array(state)
        changed[number] = change(int(changed[number])) % 2**64
        return changed

    return operand(0, make)


def _bits(change: Any) -> Any:
    """Make the bug of changing the random bits, but not the new state."""

    def wrong(call: Call) -> Value:
        right = call()
        return (right[0], change(right[1])) if isinstance(right, tuple) else change(right)

    return wrong


def _halves(bits: Array) -> Array:
    width = bits.dtype.itemsize * 8
    word = bits.view(f"u{bits.dtype.itemsize}")
    turned = (word << word.dtype.type(width // 2)) | (word >> word.dtype.type(width // 2))
    return np.asarray(turned.view(bits.dtype))


_BITS = "rng-bit-generator"

RANDOM = (
    _random(_BITS, "rng-bit-generator: counter one further", _state(1, lambda x: x + 1)),
    _random(_BITS, "rng-bit-generator: counter from zero", _state(1, lambda x: 0)),
    _random(_BITS, "rng-bit-generator: key one further", _state(0, lambda x: x + 1)),
    _random(_BITS, "rng-bit-generator: key in 32 bits", _state(0, lambda x: x % 2**32)),
    _random(_BITS, "rng-bit-generator: key and counter exchanged", operand(0, np.flip)),
    _random(_BITS, "rng-bit-generator: the other algorithm", given(algorithm=lambda name: {
        "rng_three_fry": "rng_philox"}.get(name.lower(), "rng_three_fry"))),
    _random(_BITS, "rng-bit-generator: halves of each word exchanged", _bits(_halves)),
    _random(_BITS, "rng-bit-generator: one word further", _bits(
        lambda x: np.roll(x, 1))),
    _random(_BITS, "rng-bit-generator: bits in reverse order", _bits(np.flip)),
    _random(_BITS, "rng-bit-generator: state not advanced", lambda c: (
        c.operands[0], c()[1]) if isinstance(c(), tuple) else None),
    _random("rng-get-and-update-state", "rng-get-and-update-state: one further", result(
        lambda x: x + np.uint64(1))),
    _random("rng-get-and-update-state", "rng-get-and-update-state: words exchanged", result(
        np.flip)),
)  # fmt: skip

_TRAINING = "batch-norm-training batch-norm-inference batch-norm-grad"

NORMS = (
    *_norms.each(_TRAINING, "epsilon left out", lambda c: c(epsilon=0.0)),
    *_norms.each(_TRAINING, "epsilon of 1e-3", lambda c: c(
        epsilon=c.attributes["epsilon"] + 1e-3)),
    *_norms.each("batch-norm-training batch-norm-inference", "scale and offset exchanged",
                 lambda c: c.to(0, 2, 1, *range(3, len(c.operands)))),
    _norms("batch-norm-inference", "batch-norm-inference: mean and variance exchanged",
           swapped(0, 1, 2, 4, 3)),
    _norms("batch-norm-grad", "batch-norm-grad: mean and variance exchanged",
           swapped(0, 1, 3, 2, 4)),
    _norms("batch-norm-training", "batch-norm-training: mean and variance exchanged",
           lambda c: (c()[0], c()[2], c()[1])),
    *_norms.each(_TRAINING, "another feature dimension", lambda c: c(
        feature_index=(c.attributes["feature_index"] + 1) % c.operands[0].ndim)
        if len(set(c.operands[0].shape)) == 1 and c.operands[0].ndim > 1 else None),
)  # fmt: skip

BUGS = (*COMPLEX, *MATRICES, *RANDOM, *NORMS)
