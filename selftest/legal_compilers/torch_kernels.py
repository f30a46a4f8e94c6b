"""Evaluate a program by PyTorch's own kernels on the processor, instruction by instruction.

What has a kernel in PyTorch is computed by it, in the declared type: elementwise functions, sums
and other reductions, windows, prefix sums, products of matrices (oneDNN, MKL), convolutions,
Fourier transforms, Cholesky factors, triangular systems, sorts and scattered sums. The rest is the
interpreter's: data movement, control flow, integers, and types that PyTorch has no arithmetic for.
PyTorch is optional: ``pip install 'hlo-oracle[torch]'``.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from hlo.attributes import ConvolutionDimensions, Window, WindowDimension
from hlo.module import Module
from hlo.opcodes import SUM, having
from hlo.types import BF16, C64, C128, F16, F32, F64, ArrayShape, ElementType
from hlo.values import Array
from hlo.walk import Callee, Op, column
from interp.algorithms.scatter_updates import ScatterDimensions, targets
from interp.evaluator import Evaluation
from interp.exact.conversion import type_of
from interp.exact.matrix_products import products_by
from interp.values import Value
from selftest.legal_compilers.sums import BATCHING, SCATTERS

_Function = Callable[..., Any]
_FLOATS = (F16, BF16, F32, F64)
_COMPLEX = (C64, C128)

# Opcodes by the names of PyTorch's functions, where these are others. Left out are erf, whose error
# is absolute in vectors (Abramowitz and Stegun 7.1.26: erf(1e-29) is 0), fmod of f64, which is NaN
# where the quotient overflows, sinh and cosh, which in bf16 are infinite where only e^x overflows.
_REAL: Mapping[str, str] = {
    **{name: name for name in ("acos", "acosh", "asin", "asinh", "atan2", "atanh", "ceil")},
    **{name: name for name in ("floor", "log", "maximum", "minimum", "multiply")},
    **{name: name for name in ("rsqrt", "sqrt", "subtract", "tan", "tanh", "add")},
    "abs_": "abs",
    "cosine": "cos",
    "divide": "divide",
    "exponential": "exp",
    "exponential_minus_one": "expm1",
    "log_plus_one": "log1p",
    "logistic": "sigmoid",
    "negate": "neg",
    "power": "pow",
    "round_nearest_even": "round",
    "sine": "sin",
}
_OF_COMPLEX = frozenset(("abs_", "add", "exponential", "multiply", "negate", "subtract"))
# torch.add multiplies by alpha = 1 first: of complex numbers, a NaN in one part makes both NaN.
_BY_PARTS = having(SUM)
_TRANSFORMS = {"FFT": "fftn", "IFFT": "ifftn", "RFFT": "rfftn", "IRFFT": "irfftn"}
_FOLDS = {"add": "sum", "maximum": "amax", "minimum": "amin"}
_EXTREMES = {"maximum": -np.inf, "minimum": np.inf}
_POINT = Window()
_LONGEST_CONVOLUTION = 3  # spatial dimensions


def has_torch() -> bool:
    """Test whether PyTorch is installed."""
    return importlib.util.find_spec("torch") is not None


class TorchKernels:
    """Runs programs by PyTorch's kernels."""

    def __init__(self) -> None:
        self._torch: Any = importlib.import_module("torch")
        ops = column("interp.ops")
        self._ops: dict[str, Op] = dict(ops)
        for name in _REAL:
            self._ops[name] = replace(
                ops[name], function=self._elementwise(name, ops[name].function)
            )
        made: Mapping[str, Callable[[_Function], _Function]] = {
            "cholesky": self._factored,
            "convert": self._converted,
            "convolution": self._convolved,
            "fft": self._transformed,
            "reduce": self._reduced,
            "reduce_window": self._in_windows,
            "scatter": self._scattered,
            "sort": self._sorted,
            "triangular_solve": self._solved,
        }
        for name, make in made.items():
            self._ops[name] = replace(ops[name], function=make(ops[name].function))

    def __call__(
        self, module: Module, *arguments: Value, seed: int = 0, fuel: int | None = None
    ) -> Value:
        with products_by(self._product), np.errstate(all="ignore"):
            return Evaluation(module, fuel, ops=self._ops).result(arguments, seed)

    # Arrays

    def _tensor(self, array: Any) -> Any:
        """Copy an array to a tensor; bf16 by its bits, as PyTorch does not know its NumPy type."""
        given = np.array(array, order="C")
        if given.dtype == ml_dtypes.bfloat16:
            return self._torch.from_numpy(given.view(np.int16)).view(self._torch.bfloat16)
        return self._torch.from_numpy(given)

    def _array(self, tensor: Any, element_type: ElementType) -> Array:
        """Convert a tensor to an element type by PyTorch, and to an array."""
        # A conjugate may be a mark on the numbers, which NumPy does not know.
        tensor = tensor.to(self._dtype(element_type)).resolve_conj().contiguous()
        if element_type is BF16:
            return np.asarray(tensor.view(self._torch.int16).numpy().view(ml_dtypes.bfloat16))
        return np.asarray(tensor.numpy())

    def _dtype(self, element_type: ElementType) -> Any:
        names = {F16: "float16", BF16: "bfloat16", F32: "float32", F64: "float64"}
        names |= {C64: "complex64", C128: "complex128"}
        return getattr(self._torch, names[element_type])

    # Instructions

    def _elementwise(self, name: str, exactly: _Function) -> _Function:
        kernel = getattr(self._torch, _REAL[name])

        def op(*operands: Array, **attributes: Any) -> Any:
            element_type = type_of(np.asarray(operands[0]))
            takes = element_type in _COMPLEX and name in _OF_COMPLEX
            if not takes and element_type not in _FLOATS:
                return exactly(*operands, **attributes)
            tensors = list(map(self._tensor, operands))
            parts = {C64: F32, C128: F64}
            if element_type in parts and name in _BY_PARTS:
                pairs = kernel(*map(self._torch.view_as_real, tensors))
                return self._array(self._torch.view_as_complex(pairs), element_type)
            result = kernel(*tensors)
            is_real = name == "abs_" and element_type in parts
            return self._array(result, parts[element_type] if is_real else element_type)

        return op

    def _converted(self, exactly: _Function) -> _Function:
        def op(operand: Array, *, shape: ArrayShape, **attributes: Any) -> Any:
            if type_of(operand) not in _FLOATS or shape.element_type not in _FLOATS:
                return exactly(operand, shape=shape, **attributes)
            return self._array(self._tensor(operand), shape.element_type)

        return op

    def _reduced(self, exactly: _Function) -> _Function:
        def op(
            *operands: Array, dimensions: tuple[int, ...], to_apply: Callee[Value], **given: Any
        ) -> Any:
            element_type, fold = type_of(operands[0]), self._fold(operands, to_apply)
            empty = not operands[0].size or not dimensions
            if fold is None or empty or element_type not in _FLOATS:
                return exactly(*operands, dimensions=dimensions, to_apply=to_apply, **given)
            values, init = map(self._tensor, operands)
            folded = fold(values, dimensions)
            return self._array(self._joined(to_apply, folded, init), element_type)

        return op

    def _fold(self, operands: Sequence[Array], to_apply: Callee[Value]) -> _Function | None:
        """Return PyTorch's reduction for a computation; None if there is none."""
        name = _FOLDS.get(to_apply.monoid or "")
        return getattr(self._torch, name) if name and len(operands) == 2 else None

    def _joined(self, to_apply: Callee[Value], one: Any, other: Any) -> Any:
        return getattr(self._torch, str(to_apply.monoid))(one, other)

    def _in_windows(self, exactly: _Function) -> _Function:
        def op(
            *operands: Array, to_apply: Callee[Value], window: Window = _POINT, **given: Any
        ) -> Any:
            element_type, fold = type_of(operands[0]), self._fold(operands, to_apply)
            if fold is None or element_type not in _FLOATS or not _slides(window, operands[0]):
                return exactly(*operands, to_apply=to_apply, window=window, **given)
            values, init = map(self._tensor, operands)
            summed = _summed_dimension(window, operands[0].shape)
            if summed is not None and to_apply.monoid == "add":
                found = self._torch.cumsum(values, summed)
            else:
                found = self._windows(values, window, _EXTREMES.get(str(to_apply.monoid), 0.0))
                rank = len(window.dimensions)
                found = fold(found, tuple(range(rank, 2 * rank)))
            return self._array(self._joined(to_apply, found, init), element_type)

        return op

    def _windows(self, values: Any, window: Window, padding: float) -> Any:
        """Make a tensor of all windows: their positions, then the elements in each."""
        sides = [side for d in reversed(window.dimensions) for side in _padding(d)]
        values = self._torch.nn.functional.pad(values, sides, value=padding)
        for number, d in enumerate(window.dimensions):
            values = values.unfold(number, d.size, d.stride)
        return values

    def _product(self, lhs: Array, rhs: Array, element_type: ElementType) -> Array | None:
        """Multiply matrices [b, m, k] and [b, k, n], in the type of the result."""
        types = {type_of(lhs), type_of(rhs), element_type}
        if not (types <= set(_FLOATS) or types <= set(_COMPLEX)):
            return None
        if len(types) > 1 or not (np.isfinite(lhs).all() and np.isfinite(rhs).all()):
            return None  # padding that meets an infinity or a NaN is no factor
        return self._array(self._torch.bmm(self._tensor(lhs), self._tensor(rhs)), element_type)

    def _convolved(self, exactly: _Function) -> _Function:
        def op(
            lhs: Array,
            rhs: Array,
            *,
            shape: ArrayShape,
            dim_labels: ConvolutionDimensions,
            window: Window = _POINT,
            feature_group_count: int = 1,
            batch_group_count: int = 1,
            **given: Any,
        ) -> Any:
            types = {type_of(lhs), type_of(rhs), shape.element_type}
            dilated = any(d.base_dilation > 1 for d in window.dimensions)
            takes = len(types) == 1 and types <= set(_FLOATS) and lhs.size and rhs.size
            finite = takes and np.isfinite(lhs).all() and np.isfinite(rhs).all()
            rank = len(window.dimensions)
            extents = [lhs.shape[dimension] for dimension in dim_labels.input_spatial]
            spatial = 1 <= rank <= _LONGEST_CONVOLUTION and 0 not in shape.dims
            spatial = spatial and _is_cut_within(extents, window)
            if not (finite and spatial) or dilated or batch_group_count > 1:
                groups = {
                    "feature_group_count": feature_group_count,
                    "batch_group_count": batch_group_count,
                }
                attributes = {"shape": shape, "dim_labels": dim_labels, "window": window}
                return exactly(lhs, rhs, **attributes, **groups, **given)
            labels, sides = (
                dim_labels,
                [s for d in reversed(window.dimensions) for s in _padding(d)],
            )
            images = (labels.input_batch, labels.input_feature, *labels.input_spatial)
            kernels = (labels.kernel_output_feature, labels.kernel_input_feature)
            weights = self._tensor(rhs.transpose((*kernels, *labels.kernel_spatial)))
            turned = [2 + n for n, d in enumerate(window.dimensions) if d.reversal]
            values = self._torch.nn.functional.pad(self._tensor(lhs.transpose(images)), sides)
            convolution = getattr(self._torch.nn.functional, f"conv{rank}d")
            found = convolution(
                values,
                weights.flip(turned),
                stride=[d.stride for d in window.dimensions],
                dilation=[d.window_dilation for d in window.dimensions],
                groups=feature_group_count,
            )
            places = (labels.output_batch, labels.output_feature, *labels.output_spatial)
            order = [places.index(d) for d in range(len(places))]
            return self._array(found.permute(order), shape.element_type)

        return op

    def _transformed(self, exactly: _Function) -> _Function:
        def op(operand: Array, *, fft_type: str, fft_length: tuple[int, ...], **given: Any) -> Any:
            exact = exactly(operand, fft_type=fft_type, fft_length=fft_length, **given)
            if not operand.size or 0 in fft_length:
                return exact
            dims = tuple(range(-len(fft_length), 0))
            kernel = getattr(self._torch.fft, _TRANSFORMS[fft_type])
            return self._array(
                kernel(self._tensor(operand), s=fft_length, dim=dims), type_of(exact)
            )

        return op

    def _factored(self, exactly: _Function) -> _Function:
        def op(operand: Array, *, lower: bool = False, **given: Any) -> Any:
            element_type = type_of(operand)
            if not operand.size or element_type not in (F32, F64, *_COMPLEX):
                return exactly(operand, lower=lower, **given)
            found = self._torch.linalg.cholesky_ex(self._tensor(_hermitian(operand, lower)))
            if bool(found.info.any()):  # no factor: what there is then differs
                return exactly(operand, lower=lower, **given)
            return self._array(found.L if lower else found.L.mH, element_type)

        return op

    def _solved(self, exactly: _Function) -> _Function:
        def op(
            a: Array, b: Array, *, left_side: bool = False, lower: bool = False, **given: Any
        ) -> Any:
            element_type = type_of(a)
            transposed = given.get("transpose_a", "NO_TRANSPOSE")
            if not (a.size and b.size) or element_type not in (F32, F64, *_COMPLEX):
                return exactly(a, b, left_side=left_side, lower=lower, **given)
            matrix, right = self._tensor(a), self._tensor(b)
            if transposed != "NO_TRANSPOSE":
                matrix = matrix.mH if transposed == "ADJOINT" else matrix.mT
                lower = not lower
            found = self._torch.linalg.solve_triangular(
                matrix,
                right,
                upper=not lower,
                left=left_side,
                unitriangular=bool(given.get("unit_diagonal", False)),
            )
            return self._array(found, element_type)

        return op

    def _sorted(self, exactly: _Function) -> _Function:
        def op(*operands: Array, dimensions: tuple[int, ...], **given: Any) -> Any:
            direction, keys = _order(given["to_apply"]), operands[0]
            is_ordered = direction and type_of(keys) in _FLOATS and not np.isnan(keys).any()
            if not (is_ordered and keys.size):
                return exactly(*operands, dimensions=dimensions, **given)
            (dimension,) = dimensions
            descending = direction == "GT"
            found = self._torch.sort(
                self._tensor(keys), dim=dimension, descending=descending, stable=True
            )
            places = found.indices.numpy()
            moved = tuple(np.take_along_axis(x, places, dimension) for x in operands)
            return moved if len(moved) > 1 else moved[0]

        return op

    def _scattered(self, exactly: _Function) -> _Function:
        def op(*operands: Array, to_apply: Callee[Value], **given: Any) -> Any:
            is_sum = len(operands) == 3 and to_apply.monoid == "add"
            if not is_sum or type_of(operands[0]) not in _FLOATS or not operands[0].size:
                return exactly(*operands, to_apply=to_apply, **given)
            values, indices, updates = operands
            dimensions = ScatterDimensions(
                *(given[name] for name in SCATTERS), *(given.get(name, ()) for name in BATCHING)
            )
            offset, inside = targets(values.shape, indices, updates.shape, dimensions)
            flat = self._tensor(values).reshape(-1)
            places = self._torch.from_numpy(np.array(offset[inside], np.int64).reshape(-1))
            flat.index_add_(0, places, self._tensor(updates[inside]).reshape(-1))
            return self._array(flat.reshape(values.shape), type_of(values))

        return op


def _padding(d: WindowDimension) -> tuple[int, int]:
    return d.padding_low, d.padding_high


def _is_cut_within(extents: Sequence[int], window: Window) -> bool:
    """Test for negative padding that takes elements of the operand alone: PyTorch cuts before it
    pads, so it cannot cut what it pads with."""
    return all(
        extent + min(d.padding_low, 0) + min(d.padding_high, 0) >= 0
        for extent, d in zip(extents, window.dimensions, strict=True)
    )


def _slides(window: Window, operand: Array) -> bool:
    """Test for dense windows that lie within the operand and its padding."""
    return (
        bool(operand.size)
        and len(window.dimensions) == operand.ndim
        and all(
            d.base_dilation == d.window_dilation == 1
            and min(_padding(d)) >= 0
            and d.size <= extent + d.padding_low + d.padding_high
            for d, extent in zip(window.dimensions, operand.shape, strict=True)
        )
    )


def _summed_dimension(window: Window, dims: tuple[int, ...]) -> int | None:
    """Return the dimension of a cumulative sum; None for other windows."""
    long = [n for n, d in enumerate(window.dimensions) if d != WindowDimension(1)]
    if len(long) != 1:
        return None
    size = dims[long[0]]
    whole = WindowDimension(size, padding_low=size - 1)
    return long[0] if window.dimensions[long[0]] == whole else None


def _hermitian(matrix: Array, lower: bool) -> Array:
    """Return the lower triangle of a Hermitian matrix, from the triangle that is stored."""
    part = np.tril(matrix) if lower else np.conj(np.swapaxes(np.triu(matrix), -1, -2))
    return np.asarray(part)


def _order(to_apply: Callee[Value]) -> str | None:
    """Return LT or GT for a comparator that only compares its first two operands so; None for
    others."""
    root, parameters = to_apply.computation.root_instruction, to_apply.computation.parameters
    by_number = {p.attributes["parameter_number"]: p.name for p in parameters}
    if root.opcode != "compare" or root.operands != (by_number.get(0), by_number.get(1)):
        return None
    if root.attributes.get("type") == "TOTALORDER":
        return None
    direction = str(root.attributes["direction"])
    return direction if direction in ("LT", "GT") else None
