"""Write dot and convolution as one contraction: matrix products of batch, rows, columns and steps
k.

Factors of f32 and narrower are packed into panels and multiplied in register tiles of f64 sums
(runtime/hlo_tile.h); each sum is rounded once where its error bound decides the rounding, and added
up exactly where it does not. f64 is summed in double-double, the rest (integers, complex) in plain
loops.
"""

from __future__ import annotations

from backend_c.ir.element import Element, Writer
from backend_c.ir.loop_ir import Expr
from backend_c.ir.scope import Scope, apply
from backend_c.kernels.parts.contraction.complex_factors import real_factors
from backend_c.kernels.parts.contraction.contraction_loops import (
    DoubleDoubleLoops,
    Types,
    Write,
    exact_loops,
    integer_loops,
)
from backend_c.kernels.parts.contraction.exact_scalar_contraction import ExactScalarContraction
from backend_c.kernels.parts.contraction.exact_small_contraction import (
    ExactSmallContraction,
    is_small_for_tiles,
)
from backend_c.kernels.parts.contraction.factors import Factors, dot_factors
from backend_c.kernels.parts.contraction.fast_contraction import FastContraction, is_padded
from backend_c.kernels.parts.contraction.narrow_contraction import NarrowContraction, is_narrow
from backend_c.kernels.parts.contraction.products import (
    bf16_product,
    integer_product,
    plain_product,
)
from backend_c.kernels.parts.contraction.scalar_contraction import ScalarContraction
from backend_c.kernels.parts.contraction.skinny_contraction import SkinnyContraction
from backend_c.kernels.parts.contraction.small_contraction import SmallContraction, is_small
from backend_c.kernels.parts.contraction.sparse_operand import with_all_elements
from backend_c.kernels.parts.contraction.split_contraction import (
    is_skinny,
    parts_of,
    split_contraction,
)
from backend_c.kernels.parts.contraction.tiled_contraction import TiledContraction
from backend_c.kernels.parts.contraction_in_blocks.block_complex import (
    complex_contraction,
    has_complex_tiles,
)
from backend_c.kernels.parts.contraction_in_blocks.block_contraction import (
    BlockContraction,
    has_blocks,
)
from backend_c.kernels.parts.contraction_in_blocks.untiled_sums import has_tiles
from backend_c.kernels.parts.convolution.convolution_factors import convolution_factors
from backend_c.kernels.parts.convolution.convolution_input import Convolved
from backend_c.kernels.parts.convolution.depthwise_convolution import (
    DepthwiseConvolution,
    is_depthwise,
)
from backend_c.kernels.parts.convolution.dilated_phases import has_phases, phases
from backend_c.kernels.parts.convolution.fast_convolution import FastConvolution
from backend_c.kernels.parts.convolution.gathered_convolution import (
    GatheredConvolution,
    has_gathered_rows,
)
from backend_c.kernels.parts.convolution.integer_convolution import (
    IntegerConvolution,
    depthwise_sums,
    integer_convolution,
)
from backend_c.kernels.parts.convolution.narrow_result_convolution import (
    NarrowResultConvolution,
    has_narrow_result,
)
from backend_c.kernels.parts.convolution.phase_factors import may_be_divided, phase_factors, within
from backend_c.kernels.parts.convolution.scalar_convolution import scalar_convolution
from backend_c.kernels.parts.convolution.wide_windows import (
    has_wide_window,
    with_features_in_window,
)
from hlo.attributes import ConvolutionDimensions, SparsityConfig, Window
from hlo.sparse_operands import stored_sparsely
from hlo.types import C128, F32, F64, PARTS, ArrayShape, ElementType

__all__ = ["convolution", "dot"]


def dot(
    lhs: Element,
    rhs: Element,
    *,
    shape: ArrayShape,
    lhs_contracting_dims: tuple[int, ...] = (),
    rhs_contracting_dims: tuple[int, ...] = (),
    lhs_batch_dims: tuple[int, ...] = (),
    rhs_batch_dims: tuple[int, ...] = (),
    operand_precision: tuple[str, ...] = (),
    algorithm: str = "",
    write: Writer,
    block: Scope,
) -> None:
    """result[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, n, k], exact and rounded once."""
    types = lhs.shape.element_type, rhs.shape.element_type
    factors = dot_factors(
        lhs, rhs, (lhs_batch_dims, rhs_batch_dims), (lhs_contracting_dims, rhs_contracting_dims)
    )
    write.sizes(0, factors.sizes)
    contract(factors, types, shape.element_type, write, block)


def convolution(
    lhs: Element,
    rhs: Element,
    *indices: Element,
    shape: ArrayShape,
    dim_labels: ConvolutionDimensions,
    window: Window = Window(),  # noqa: B008  # frozen
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    operand_precision: tuple[str, ...] = (),
    algorithm: str = "",
    convolution_kind: str = "",
    sparsity_config: SparsityConfig | None = None,
    write: Writer,
    block: Scope,
) -> None:
    """result[b, y, f] = sum over t, c of lhs[b, y * stride + t * dilation - low, c] * rhs[t, c, f].

    t are the taps of the window, c the input features. Exact and rounded once; padding and the
    holes of base dilation are no factors.
    """
    operands = [lhs, rhs, *indices]
    for sparse in stored_sparsely(sparsity_config):
        stored, places = operands[sparse.operand], operands[sparse.indices]
        operands[sparse.operand] = with_all_elements(stored, places, sparse)
    lhs, rhs = operands[:2]
    groups = feature_group_count, batch_group_count
    types = lhs.shape.element_type, rhs.shape.element_type
    factors = convolution_factors(lhs, rhs, shape, dim_labels, window, groups)
    write.sizes(0, factors.sizes)
    steps = ((0, 1),) * shape.rank
    convolved = Convolved(lhs, shape.dims, dim_labels, window, *groups, shape.dims, steps)
    parts = [(convolved, factors)]
    # Fast sums read the input at constant offsets, so each phase is a convolution of its own. Exact
    # ones read it by index: phases are batches of one contraction, all as long as the longest, and
    # `within` leaves out results beyond the last pixel of the others.
    is_real = not any(t.is_complex for t in (*types, shape.element_type))
    is_fast = block.settings.is_fast and is_real and _fast_sums(types, shape.element_type)
    if is_fast and not block.settings.is_scalar and has_phases(lhs, rhs, window):
        parts = list(phases(convolved, rhs))
    # Blocks of threads read windows as patches, in any order of steps.
    elif is_fast and block.settings.has_lanes and has_wide_window(convolved):
        parts = [with_features_in_window(convolved, rhs)]
    elif not block.settings.is_fast and may_be_divided(convolved, rhs):
        divided, guarded = phase_factors(convolved, rhs), within(shape, write, block)
        contract(divided, types, shape.element_type, guarded, block)
        return
    for part, part_factors in parts:
        contract(part_factors, types, shape.element_type, write, block, part)


def contract(
    factors: Factors,
    types: Types,
    result: ElementType,
    write: Write,
    scope: Scope,
    convolved: Convolved | None = None,
) -> None:
    """Write the contraction of factors of ``types``; ``convolved`` is the convolution it comes
    from.

    To a result of another kind (an integer or pred for floats, pred for integers) the sum is
    converted from the wider of the factors' types.
    """
    if 0 in (factors.batch, factors.m, factors.n):
        return
    common = max(types, key=_width)
    # The sum is exact in the wider type first: what a conversion saturates or truncates is one
    # number.
    # Complex factors to a float are no conversion: that sum is one of real parts.
    if _KINDS[result.kind] < min(_KINDS[common.kind], _KINDS["float"]):
        wide = PARTS.get(common, common)

        def converted(index: tuple[Expr, ...], values: tuple[Expr, ...]) -> None:
            write(index, (apply("convert", values[0], type=result),))

        contract(factors, types, wide, converted, scope, convolved)
    elif has_complex_tiles(factors, types, result, scope):
        complex_contraction(factors, types, result, write, scope)
    elif scope.settings.is_fast and factors.k and _fast_sums(types, result):
        _fast(factors, types, result, write, scope, convolved)
    elif result.is_inexact:
        _contract_floats(factors, types, result, write, scope, convolved)
    elif has_blocks(factors, scope):
        BlockContraction(factors, types, result, write, scope).integers()
    elif scope.settings.is_scalar:
        _emit(ScalarContraction(factors, (result, result), write, scope), convolved)
    else:
        _integers(factors, types, result, write, scope, convolved)


_KINDS = {"pred": 0, "unsigned": 1, "signed": 1, "float": 2, "complex": 3}


def _width(element_type: ElementType) -> tuple[int, int]:
    """Return a sort key by which the wider of two types is the greater."""
    return _KINDS[element_type.kind], element_type.bits


def _integers(
    factors: Factors,
    types: Types,
    result: ElementType,
    write: Write,
    scope: Scope,
    convolved: Convolved | None,
) -> None:
    """Choose the loops of a contraction of integers."""
    # Sums modulo 2**bits are the same in any order, so exact mode has the loops of fast mode.
    if convolved is None and (product := integer_product(factors, types, result)):
        FastContraction(factors, product, result, write, scope).emit()
        return
    if convolved is not None and scope.settings.has_lanes:
        if sums := depthwise_sums(convolved, types, result):
            DepthwiseConvolution(convolved, factors, (sums, result), write, scope).emit()
            return
        if product := integer_convolution(convolved, factors, types, result):
            IntegerConvolution(convolved, factors, product, result, write, scope).emit()
            return
    integer_loops(factors, result, write, scope)


def _contract_floats(
    factors: Factors,
    types: Types,
    result: ElementType,
    write: Write,
    scope: Scope,
    convolved: Convolved | None,
) -> None:
    """Choose the loops of an exact contraction to floats or complex numbers."""
    is_narrow_sum = _is_narrow_sum(types, result)
    # Double-double takes real factors, each of which is one f64.
    is_long = any(t.is_complex or (t.is_integer and t.bits == 64) for t in types)
    # An empty sum (k = 0) has no bound to decide by: the accumulator gives its +0.
    blocks = has_blocks(factors, scope) and BlockContraction(factors, types, result, write, scope)
    if scope.settings.is_scalar and factors.k and is_narrow_sum:
        _emit(ExactScalarContraction(factors, types, result, write, scope), convolved)
    elif blocks and is_narrow_sum:
        blocks.rounded()
    elif blocks and result is F64 and not is_long and has_tiles(factors):
        blocks.pairs()
    elif factors.k and is_narrow_sum and is_small_for_tiles(factors, types, scope):
        ExactSmallContraction(factors, types, result, write, scope).emit()
    elif factors.k and is_narrow_sum and is_narrow(factors):
        NarrowContraction(factors, types, result, write, scope).emit()
    elif factors.k and is_narrow_sum:
        TiledContraction(factors, result, write, scope).emit()
    elif factors.k and result is F64 and not is_long:
        DoubleDoubleLoops(factors, types, write, scope).emit()
    else:
        exact_loops(factors, types, result, write, scope)


def _fast_sums(types: Types, result: ElementType) -> ElementType | None:
    """Return the type that fast mode adds products up in, f32 or f64; None if it has none."""
    if not result.is_inexact:
        return None
    # Factors are converted to the type of the sums first, so it has to have them all.
    if any(t.is_integer and t.bits > 32 for t in types):
        return None
    is_wide = any(t in (F64, C128) for t in (*types, result))
    return F64 if is_wide or any(t.is_integer and t.bits > 16 for t in types) else F32


def _is_narrow_sum(types: Types, result: ElementType) -> bool:
    """Return whether products are exact in f64, and their sum is rounded to a narrower float."""
    of_narrow = all(t.is_float and t.bits <= 32 for t in types)
    return of_narrow and result.is_float and result is not F64


def _emit(sums: ScalarContraction, convolved: Convolved | None) -> None:
    """Write a contraction for a target without lanes."""
    if convolved is None:
        sums.matrices()
    else:
        scalar_convolution(convolved, sums)


def _convolution(convolved: Convolved) -> type[FastConvolution]:
    """Choose the loops of a convolution of floats in fast mode."""
    if is_depthwise(convolved):
        return DepthwiseConvolution
    if has_gathered_rows(convolved):
        return GatheredConvolution
    return NarrowResultConvolution if has_narrow_result(convolved) else FastConvolution


def _fast(
    factors: Factors,
    types: Types,
    result: ElementType,
    write: Write,
    scope: Scope,
    convolved: Convolved | None,
) -> None:
    """Choose the loops of a contraction in fast mode."""
    sums = _fast_sums(types, result)
    assert sums is not None
    if any(t.is_complex for t in (*types, result)):
        real = real_factors(factors, result)
        FastContraction(real, plain_product(sums), result, write, scope).emit()
    elif has_blocks(factors, scope):
        BlockContraction(factors, types, result, write, scope).plain_sums(sums)
    elif scope.settings.is_scalar:
        _emit(ScalarContraction(factors, (sums, result), write, scope), convolved)
    # Blocks are rows of pixels: there must be a spatial dimension, of an extent that is known.
    elif convolved is not None and convolved.outputs and not convolved.lhs.sizes:
        kind = _convolution(convolved)
        kind(convolved, factors, (sums, result), write, scope).emit()
    elif is_small(factors, types):
        SmallContraction(factors, (sums, result), write, scope).emit()
    # Padding is a zero factor here, and FastContraction alone mends its products with infinities.
    # (Small matrices have no padding: their factors are plain loads.)
    elif is_skinny(factors) and not is_padded(factors):
        SkinnyContraction(factors, (sums, result), write, scope).emit()
    elif convolved is None and sums is F32 and (product := bf16_product(factors, types)):
        FastContraction(factors, product, result, write, scope).emit()
    elif (parts := parts_of(factors)) > 1 and not is_padded(factors):
        split_contraction(factors, parts, plain_product(sums), result, write, scope)
    else:
        FastContraction(factors, plain_product(sums), result, write, scope).emit()
