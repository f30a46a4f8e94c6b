"""Write custom calls: a table of the targets that C is generated for."""

from __future__ import annotations

import math
from collections.abc import Callable

from backend_c.elemental.data_movement import all_of
from backend_c.ir import index as ix
from backend_c.ir import nest
from backend_c.ir.element import Element, Value, Writer
from backend_c.ir.loop_ir import INDEX, Constant, Expr, Pointer
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.linear_algebra import (
    potrf,
    routine_type,
    triangular_solve,
)
from backend_c.kernels.parts.factorisation.cholesky_and_substitution import in_memory
from backend_c.kernels.parts.factorisation.lapack_factors import geqrf, getrf, orgqr
from backend_c.kernels.sort import topk
from hlo.aliasing import Alias
from hlo.attributes import ConvolutionDimensions, Window
from hlo.custom_calls import MARKERS, TRANSPOSES, letter, require_fitting
from hlo.errors import Unsupported
from hlo.literal import Literal
from hlo.types import PRED, S32, Shape
from hlo.walk import Callee

__all__ = ["custom_call"]

# (operands' arrays in order, backend_config as text, where results go)
_Target = Callable[[list[Element], str, Writer], None]


def custom_call(
    *operands: Value,
    custom_call_target: str,
    shape: Shape,
    operand_shapes: tuple[Shape, ...],
    backend_config: str = "",
    window: Window = Window(),  # noqa: B008  (frozen)
    dim_labels: ConvolutionDimensions | None = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    operand_layout_constraints: tuple[Shape, ...] | None = None,
    custom_call_has_side_effect: bool = False,
    to_apply: Callee[Value] | None = None,
    called_computations: tuple[Callee[Value], ...] = (),
    output_to_operand_aliasing: tuple[Alias, ...] = (),
    padding_type: str = "",
    literal: Literal | None = None,
    operand_precision: tuple[str, ...] = (),
    schedule: str = "",
    api_version: str = "",
    write: Writer,
    block: Scope,
) -> None:
    """Dispatch on the target; raise Unsupported for one that is not in the table."""
    target = _TARGETS.get(custom_call_target)
    if target is None:
        raise Unsupported(
            f"no C for the custom call target {custom_call_target!r}; there is for"
            f" {', '.join(sorted(_TARGETS))}"
        )
    # The target's meaning fixes the shapes: a text that contradicts it would write out of bounds.
    require_fitting(custom_call_target, operand_shapes, shape, backend_config)
    arrays = [element for operand in operands for element in _arrays(operand)]
    target(arrays, backend_config, write)


def _arrays(value: Value) -> list[Element]:
    """Return the readers in a value in order."""
    if isinstance(value, Element):
        return [value]
    return [element for part in value for element in _arrays(part)]


def _identity(operands: list[Element], config: str, write: Writer) -> None:
    """Write the operand: a marker, of no effect on values."""
    for number, operand in enumerate(operands):
        write.sizes(number, operand.sizes)
        with nest.flat(write.scope, operand.shape.dims) as index:
            write.some((number,), index, (operand.at(*index),))


def _topk(operands: list[Element], config: str, write: Writer) -> None:
    """Write the k largest of the last dimension and their indices; k is the result's size."""
    topk(operands[0], k=write.shapes[0].dims[-1], write=write, block=write.scope)


def _slice_to_dynamic(operands: list[Element], config: str, write: Writer) -> None:
    """Write padded data as data of the sizes given as operands."""
    data, *sizes = operands
    dims = data.shape.dims
    actual = [
        write.scope.bind(ix.clamp(0, apply("convert", size.at(), type=INDEX), data.size(d)))
        for d, size in enumerate(sizes)
    ]
    write.sizes(0, tuple(actual))
    with nest.flat(write.scope, dims) as index:
        write(index, (data.at(*index),))


def _pad_to_static(operands: list[Element], config: str, write: Writer) -> None:
    """Write data of actual sizes as data padded with zeros to its bounds, and those sizes."""
    (data,) = operands
    dims, element_type = data.shape.dims, data.shape.element_type
    zero = Constant(element_type, False if element_type is PRED else 0)
    for number in range(len(dims)):
        size = apply("convert", data.size(number), type=S32)
        write.some((1 + number,), (), (size,))
    with nest.flat(write.scope, dims) as index:
        value: Expr = data.at(*index)
        if data.sizes:
            inside = [
                apply("compare-LT", i, size, type=PRED)
                for i, size in zip(index, data.sizes, strict=True)
            ]
            value = apply("select", all_of(inside), value, zero, type=element_type)
        write.some((0,), index, (value,))


def _potrf(operands: list[Element], config: str, write: Writer) -> None:
    """Write LAPACK's potrf: the Cholesky factor in the triangle that ``uplo`` names, and info.

    info is 0, or 1 + the first column without a factor.
    """
    (operand,), scope = operands, write.scope
    size, count = operand.shape.dims[-1], math.prod(operand.shape.dims[:-2])
    function = f"hlo_cholesky_lapack_{routine_type(operand, 'potrf')}"
    is_lower = letter(config, "uplo", "LU") == "L"
    if scope.settings.is_fast or nest.has_blocks(scope):
        potrf(operand, is_lower, write, scope)
        return
    lower = Constant(S32, int(is_lower))
    array = in_memory(operand, scope)
    with nest.outer(scope, (count,), size**3) as (matrix,):
        start = ix.multiply(matrix, size * size)
        scope.call(
            function,
            Pointer(array, start),
            Pointer(write.arrays[0], start),
            Pointer(write.arrays[1], matrix),
            ix.constant(size),
            lower,
        )


def _trsm(operands: list[Element], config: str, write: Writer) -> None:
    """Write BLAS' trsm: the solution of op(a) x = alpha b, or of x op(a) = alpha b; alpha is 1 if
    it is not given."""
    a, b, *alpha = operands
    triangular_solve(
        a,
        _scaled(b, *alpha) if alpha else b,
        left_side=letter(config, "side", "LR") == "L",
        lower=letter(config, "uplo", "LU") == "L",
        unit_diagonal=letter(config, "diag", "NU") == "U",
        transpose_a=TRANSPOSES[letter(config, "trans_x", "NTC")],
        write=write,
        block=write.scope,
    )


def _scaled(array: Element, factor: Element) -> Element:
    """Multiply all elements by a scalar."""

    def at(*index: Expr) -> Expr:
        return apply("multiply", array.at(*index), factor.at())

    return Element(array.shape, at, array.sizes)


_TARGETS: dict[str, _Target] = {
    **dict.fromkeys(MARKERS, _identity),
    "PadToStatic": _pad_to_static,
    "SliceToDynamic": _slice_to_dynamic,
    "TopK": _topk,
    **{
        f"lapack_{kind}{name}_ffi": target
        for name, target in (
            ("potrf", _potrf),
            ("trsm", _trsm),
            ("getrf", getrf),
            ("geqrf", geqrf),
            ("orgqr", orgqr),
        )
        for kind in "sd"
    },
}
