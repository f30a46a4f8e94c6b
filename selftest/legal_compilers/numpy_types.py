"""Evaluate a program by NumPy's own functions, each instruction in one wide type.

Operands are converted to float32, float64 or x87's extended precision, the instruction is NumPy's
(its vectorised functions, the C library's, its pairwise sums, BLAS, pocketfft), and the result is
rounded to the declared type when it is stored. Nothing is shared with the functions, sums and
products of the interpreter, and no budget is followed. What does not round is the interpreter's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.special

from hlo.module import Module
from hlo.types import BF16, F16, F32, F64, ArrayShape, ElementType
from hlo.values import Array
from hlo.walk import Callee, Op, column
from interp.evaluator import Evaluation
from interp.exact.conversion import type_of, widened
from interp.exact.matrix_products import products_by
from interp.exact.rounding import rounded
from interp.values import Value
from selftest.legal_compilers.over_the_reals import has_extended_precision, to_odd

_Function = Callable[..., Any]

_REAL: Mapping[str, _Function] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "add": np.add,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "cosh": np.cosh,
    "cosine": np.cos,
    "divide": np.divide,
    "erf": lambda x: scipy.special.erf(x.astype(np.float64)).astype(x.dtype),
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "log": np.log,
    "log_plus_one": np.log1p,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "multiply": np.multiply,
    "power": np.power,
    "remainder": np.fmod,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sine": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "subtract": np.subtract,
    "tan": np.tan,
    "tanh": np.tanh,
}
_COMPLEX: Mapping[str, _Function] = {
    name: _REAL[name] for name in ("add", "divide", "exponential", "multiply", "subtract")
}
_TRANSFORMS: Mapping[str, _Function] = {
    "FFT": np.fft.fftn,
    "IFFT": np.fft.ifftn,
    "RFFT": np.fft.rfftn,
    "IRFFT": np.fft.irfftn,
}
_FOLDS: Mapping[str, Any] = {"add": np.add, "multiply": np.multiply}
_OF_NUMPY = (F16, BF16, F32, F64)
_WITH_IMAGINARY = {
    np.dtype(real): np.dtype(complex_)
    for real, complex_ in (
        (np.float32, np.complex64),
        (np.float64, np.complex128),
        (np.longdouble, np.clongdouble),
    )
}


class InType:
    """Runs programs in one NumPy type, or in the declared type where that is wider."""

    def __init__(self, dtype: type[np.floating[Any]]) -> None:
        self._dtype = np.dtype(dtype)
        ops = column("interp.ops")
        self._ops: dict[str, Op] = dict(ops)
        for name in _REAL:
            self._replace(name, self._elementwise)
        self._replace("convert", self._converted)
        self._replace("fft", self._transformed)
        self._replace("reduce", self._reduced)

    def __call__(
        self, module: Module, *arguments: Value, seed: int = 0, fuel: int | None = None
    ) -> Value:
        with products_by(self._product), np.errstate(all="ignore"):
            return Evaluation(module, fuel, ops=self._ops).result(arguments, seed)

    def _replace(self, name: str, made: Callable[[str, _Function], _Function]) -> None:
        op = self._ops[name]
        self._ops[name] = replace(op, function=made(name, op.function))

    def _elementwise(self, name: str, exactly: _Function) -> _Function:
        def op(*operands: Array, **attributes: Any) -> Any:
            element_type = type_of(np.asarray(operands[0]))
            functions = _COMPLEX if element_type.is_complex else _REAL
            is_number = element_type.is_inexact
            if not is_number or name not in functions:
                return exactly(*operands, **attributes)
            wide = [self._in_full(x, element_type) for x in operands]
            return _stored(np.asarray(functions[name](*wide)), element_type)

        return op

    def _converted(self, name: str, exactly: _Function) -> _Function:
        def op(operand: Array, *, shape: ArrayShape, **attributes: Any) -> Any:
            types = type_of(operand), shape.element_type
            if not all(one in _OF_NUMPY for one in types):
                return exactly(operand, shape=shape, **attributes)
            return operand.astype(shape.element_type.numpy)

        return op

    def _transformed(self, name: str, exactly: _Function) -> _Function:
        def op(operand: Array, *, fft_type: str, fft_length: tuple[int, ...], **given: Any) -> Any:
            exact = exactly(operand, fft_type=fft_type, fft_length=fft_length, **given)
            if not operand.size or 0 in fft_length:
                return exact
            axes = tuple(range(-len(fft_length), 0))
            wide = self._in_full(operand, type_of(operand))
            found = _TRANSFORMS[fft_type](wide, s=fft_length, axes=axes)
            return _stored(np.asarray(found), type_of(exact))

        return op

    def _reduced(self, name: str, exactly: _Function) -> _Function:
        def op(
            *operands: Array, dimensions: tuple[int, ...], to_apply: Callee[Value], **given: Any
        ) -> Any:
            element_type = type_of(operands[0])
            fold = _FOLDS.get(to_apply.monoid or "") if len(operands) == 2 else None
            if not element_type.is_float or fold is None:
                return exactly(*operands, dimensions=dimensions, to_apply=to_apply, **given)
            wide, init = (self._in_full(x, element_type) for x in operands)
            return _stored(fold(init, fold.reduce(wide, axis=dimensions)), element_type)

        return op

    def _product(self, lhs: Array, rhs: Array, element_type: ElementType) -> Array | None:
        """Multiply matrices [b, m, k] and [b, k, n] by NumPy."""
        types = type_of(lhs), type_of(rhs), element_type
        if not all(one.is_float for one in types) or any(one.bits > 32 for one in types[:2]):
            return None if types != (F64, F64, F64) else self._matmul(lhs, rhs, F64)
        return self._matmul(lhs, rhs, element_type)

    def _matmul(self, lhs: Array, rhs: Array, element_type: ElementType) -> Array | None:
        if not (np.isfinite(lhs).all() and np.isfinite(rhs).all()):
            return None  # padding that meets an infinity or a NaN is no factor
        wide = [self._in_full(x, element_type) for x in (lhs, rhs)]
        return _stored(np.matmul(*wide), element_type)

    def _in_full(self, operand: Array, element_type: ElementType) -> Array:
        """Convert an operand to this evaluation's type, or to ``element_type`` if that is wider."""
        is_double = element_type.bits // (2 if element_type.is_complex else 1) == 64
        wide = np.promote_types(self._dtype, np.float64 if is_double else np.float32)
        if np.asarray(operand).dtype.kind == "c":
            wide = _WITH_IMAGINARY[wide]
        return widened(np.asarray(operand)).astype(wide)


def _stored(found: Array, element_type: ElementType) -> Array:
    """Round a result to the declared type."""
    if element_type.is_complex:
        return found.astype(element_type.numpy)
    if element_type is F64:
        return found.astype(np.float64)
    wide = to_odd(found) if found.dtype == np.longdouble else found.astype(np.float64)
    return rounded(wide, element_type)


def all_types() -> Sequence[tuple[str, Callable[..., Value]]]:
    """List the evaluations: in float32, in float64, and in extended precision."""
    found: list[tuple[str, Callable[..., Value]]] = [
        ("float32", InType(np.float32)),
        ("float64", InType(np.float64)),
    ]
    if has_extended_precision():
        found.append(("longdouble", InType(np.longdouble)))
    return found
