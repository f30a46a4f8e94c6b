"""Write convolutions of 8- and 16-bit integers: products of narrow types on explicit patches.

The products of runtime/hlo_gemm_narrow.h want the left factors of a row side by side. The input is
brought into order, as that of floats is (``convolution_input``), so that a patch is a few copies;
those of a tile of pixels are in the cache when they are multiplied.
"""

from __future__ import annotations

import math

from backend_c.ir import index as ix
from backend_c.ir.loop_ir import Array, Pointer
from backend_c.ir.scope import Scope
from backend_c.kernels.parts.contraction.contraction_loops import Types, Write
from backend_c.kernels.parts.contraction.factor_memory import right_factors
from backend_c.kernels.parts.contraction.factors import Factors
from backend_c.kernels.parts.contraction.fast_contraction import COLUMNS
from backend_c.kernels.parts.contraction.products import Product, integer_product
from backend_c.kernels.parts.convolution.convolution_input import Convolved
from backend_c.kernels.parts.convolution.depthwise_convolution import is_depthwise
from backend_c.kernels.parts.convolution.fast_convolution import FastConvolution, Into, Tile
from hlo.types import S32, U32, ElementType

_PIXELS = 96  # of a tile: as many rows as a block of a contraction of narrow types has
_FEWEST = 16  # for which the words of right factors are worth reading
_PATCHES = 1 << 17  # bytes of a tile's patches, so that they stay in the L2 cache
_MOST_TAPS = 128  # copies of a patch that are written one after the other


def integer_convolution(
    convolved: Convolved, factors: Factors, types: Types, result: ElementType
) -> Product | None:
    """Return the inner kernel for a convolution of narrow integers; None if loops are to be
    used."""
    product = integer_product(factors, types, result)
    if product is None or not convolved.outputs or convolved.lhs.sizes:
        return None
    taps = math.prod(dimension.size for dimension in convolved.window.dimensions)
    patch = factors.k * product.left.numpy.itemsize
    return product if taps <= _MOST_TAPS and _FEWEST * patch <= _PATCHES else None


def depthwise_sums(convolved: Convolved, types: Types, result: ElementType) -> ElementType | None:
    """Return the type of a depthwise integer convolution's sums, modulo 2**32.

    None for any other convolution, and where 32 bits are too few.
    """
    is_narrow = all(t.is_integer and t.bits <= 32 for t in (*types, result))
    if not is_narrow or not convolved.outputs or convolved.lhs.sizes:
        return None
    if not is_depthwise(convolved):
        return None
    return S32 if result is S32 else U32


class IntegerConvolution(FastConvolution):
    """Write one convolution by an inner kernel for narrow integers."""

    strip_columns = 4 * COLUMNS  # the patches are written for each strip

    def __init__(
        self,
        convolved: Convolved,
        factors: Factors,
        product: Product,
        result: ElementType,
        write: Write,
        scope: Scope,
    ) -> None:
        super().__init__(convolved, factors, (product.left, result), write, scope)
        self.product = product

    def prepare(self) -> None:
        """Write the packing of the right factors."""
        self.right = right_factors(self.factors, self.product, COLUMNS, self.scope)

    def strip(self, tile: Tile, left: Pointer) -> None:
        """Write a strip of columns of a block by tiles of pixels on the stack."""
        scope, k = self.scope, self.factors.k
        patch = k * self.product.left.numpy.itemsize
        # At least _FEWEST, which `integer_convolution` asks for.
        most = min(_PATCHES // patch, _PIXELS)
        pixels = min(self.width, most)
        # Rows of pixels are one tile if they are whole: its patches lie side by side.
        rows = max(1, min(self.block, most // pixels)) if pixels == self.width else 1
        pitch = min(self.columns, self.strip_columns)
        sums = scope.local(self.product.sums, rows * pixels * pitch)
        patches = scope.local(self.product.left, rows * pixels * k)
        into = Into(sums, ix.constant(0), pixels * pitch, pitch)
        with self.tiles(tile, left, (rows, pixels)) as (part, source):
            self._copy_patches(part, source, patches)
            scope.call(
                f"hlo_gemm_{self.product.name}",
                Pointer(patches, ix.constant(0)),
                ix.constant(k),
                self.right.address(part.group, part.column),
                scope.bind(ix.multiply(part.counts[0], pixels)) if rows > 1 else part.counts[1],
                part.counts[2],
                ix.constant(k),
                Pointer(sums, ix.constant(0)),
                ix.constant(pitch),
            )
            self.write_results(part, into)

    def _copy_patches(self, part: Tile, left: Pointer, patches: Array) -> None:
        """Write the patches of a tile's pixels to a matrix, a row each (explicit im2col)."""
        scope, k = self.scope, self.factors.k
        row_pitch, pixel_pitch = self.pitches()
        with scope.loop(part.counts[0]) as row, scope.loop(part.counts[1]) as pixel:
            number = ix.add(ix.multiply(row, self.width), pixel)
            first = ix.add(ix.multiply(row, row_pitch), ix.multiply(pixel, pixel_pitch))
            source = scope.bind(ix.add(left.offset, first))
            target = scope.bind(ix.multiply(number, k))
            for tap, offset in enumerate(self.input.offsets):
                with scope.loop(self.input.length, "lanes") as feature:
                    there = ix.add(target, ix.add(feature, tap * self.input.length))
                    element = scope.load(left.array, ix.add(source, ix.add(feature, offset)))
                    scope.store(patches, there, element)
