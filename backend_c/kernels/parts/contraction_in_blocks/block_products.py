"""Describe how blocks of threads multiply tiles: types of factors and sums, sizes, tensor cores.

Each row stands for functions of runtime/hlo_block_tile.h, or for those of tensor cores in
runtime/hlo_block_mma.h.
"""

from __future__ import annotations

from typing import NamedTuple

from backend_c.ir.settings import Settings
from backend_c.kernels.parts.contraction.factors import Factors
from hlo.types import BF16, F16, F32, F64, PRED, S8, S32, U8, U32, U64, ElementType

THREADS = 256  # that share a tile
STEPS = 8  # that a runtime function multiplies at a time: HLO_BLOCK_STEPS
_ROUNDS = 4  # sets of steps of a sum, at least, so that the next one comes in meanwhile
_STAGED = 21 << 10  # bytes of shared memory for the factors of two sets
_SIDE = 16  # threads of a dimension
_VECTOR = 16  # bytes that are read at a time
# Of tensor cores: bytes of a line that are in shared memory at a time (HLO_MMA_WORDS of 2), rows of
# warps and warps of a row, and lines of a block.
_LINE, _WARPS, _BLOCK = 64, (2, 4), 16
# Fewer blocks leave multiprocessors idle: GPUs of data centres have 108 (A100) to 148 (B200).
ENOUGH = 128

Types = tuple[ElementType, ElementType]


class BlockProduct(NamedTuple):
    """Describe a kind of sums of products that the runtime computes in tiles.

    ``factors`` are the types of left and right factors in shared memory, ``sums`` that of the
    ``parts`` of each sum (a pair and a magnitude in double-double). ``sizes`` are the edges of
    square tiles, the largest first. ``is_tensor``: by the tensor cores of whole warps.
    """

    name: str
    factors: Types
    sums: ElementType
    sizes: tuple[int, ...]
    parts: int = 1
    is_tensor: bool = False

    @property
    def addition(self) -> str:
        """Return the operation that combines partial sums."""
        return "or" if self.sums is PRED else "add"


# Products of f32 and narrower factors are exact in f64. Sums of f64 are pairs, beside the sum of
# magnitudes for their error bound.
WIDENED = BlockProduct("tile_f64", (F64, F64), F64, (64, 32, 16))
PAIRS = BlockProduct("tile_pair", (F64, F64), F64, (32, 16), parts=3)
# Beside sums of few lines the norms of these would take as long as all else: the error bound is
# that of the sum of magnitudes. There are no tiles of it.
MAGNITUDES = BlockProduct("magnitudes", (F64, F64), F64, (), parts=2)
PLAIN = {F32: BlockProduct("tile_f32", (F32, F32), F32, (128, 64, 32, 16)), F64: WIDENED}
# Integers modulo 2**32 or 2**64, whatever their signs; conjunctions and disjunctions.
_WORDS = BlockProduct("tile_u32", (U32, U32), U32, (64, 32, 16))
_LONG_WORDS = BlockProduct("tile_u64", (U64, U64), U64, (32, 16))
_TRUTHS = BlockProduct("tile_pred", (PRED, PRED), PRED, (32, 16))
# TF32 has 11 bits of the 24 of f32: 2**-12 of each factor is more than fast numerics may lose.
_TENSOR = {
    (BF16, BF16): BlockProduct("mma_bf16", (BF16, BF16), F32, (128, 64), is_tensor=True),
    (F16, F16): BlockProduct("mma_f16", (F16, F16), F32, (128, 64), is_tensor=True),
    (S8, S8): BlockProduct("mma_ss", (S8, S8), S32, (128, 64), is_tensor=True),
    (S8, U8): BlockProduct("mma_su", (S8, U8), S32, (128, 64), is_tensor=True),
    (U8, S8): BlockProduct("mma_us", (U8, S8), S32, (128, 64), is_tensor=True),
    (U8, U8): BlockProduct("mma_uu", (U8, U8), S32, (128, 64), is_tensor=True),
}
# Tensor cores multiply a set of steps in less time than it takes to come.
_TENSOR_STAGES = 3
_FEW_LINES = 32  # of which half of the smallest tile of tensor cores is


class Lines(NamedTuple):
    """Assign rows (or columns) of a tile to its units, each a thread or a warp.

    Each has ``groups`` of ``neighbours``; groups are ``group_pitch`` apart, units ``unit_pitch``.
    """

    units: int
    neighbours: int
    groups: int
    unit_pitch: int
    group_pitch: int

    @property
    def size(self) -> int:
        """Return the number of lines of the tile."""
        return self.units * self.neighbours * self.groups

    @property
    def strip(self) -> int:
        """Return the number of lines in one group of every unit."""
        return self.units * self.neighbours


class Tile(NamedTuple):
    """Describe a tile of the result and how a block computes it.

    A unit of ``unit_threads`` holds ``held`` parts of sums per thread; factors of ``steps`` steps
    are multiplied at a time, from ``stages`` buffers of them in shared memory.
    """

    product: BlockProduct
    rows: Lines
    columns: Lines
    unit_threads: int
    steps: int
    held: int
    stages: int = 2

    @property
    def function(self) -> str:
        """Return the prefix of the names of its runtime functions."""
        return f"hlo_block_{self.product.name}_{self.rows.size}"

    @property
    def calls(self) -> int:
        """Return the number of runtime calls that multiply one stage; one for tensor cores."""
        return 1 if self.product.is_tensor else self.steps // STEPS

    @property
    def units(self) -> int:
        """Return the number of threads, or of warps, that share the tile."""
        return self.rows.units * self.columns.units


def sized(product: BlockProduct, size: int, k: int) -> Tile:
    """Return the tile of an edge of ``size`` for sums of ``k`` steps."""
    if product.is_tensor:
        lines = []
        for units in _WARPS:
            groups = size // (units * _BLOCK)
            lines.append(Lines(units, _BLOCK, groups, groups * _BLOCK, _BLOCK))
        steps = _LINE // product.factors[0].numpy.itemsize
        return Tile(product, lines[0], lines[1], 32, steps, size * size // THREADS, _TENSOR_STAGES)
    own = size // _SIDE
    vector = min(own, _VECTOR // product.factors[0].numpy.itemsize)
    line = Lines(_SIDE, vector, own // vector, vector, _SIDE * vector)
    steps = STEPS
    width = sum(factor.numpy.itemsize * size + _VECTOR for factor in product.factors)
    # Fewer barriers, of small tiles, whose threads have little to do between.
    while 4 * steps * width <= _STAGED and 2 * steps * _ROUNDS <= k:
        steps *= 2
    return Tile(product, line, line, 1, steps, product.parts * own**2)


def integer_product(
    factors: Factors, types: Types, result: ElementType, settings: Settings
) -> BlockProduct:
    """Return the kind of sums for integers or pred, by the result's type."""
    if result is PRED:
        return _TRUTHS
    if result.bits > 32:
        return _LONG_WORDS
    return tensor_product(factors, types, settings) or _WORDS


def tensor_product(factors: Factors, types: Types, settings: Settings) -> BlockProduct | None:
    """Return the kind of sums by tensor cores for factors of given types; None if there are none,
    or they do not pay."""
    if not settings.has_tensor_cores or min(factors.m, factors.n, factors.k) < _FEW_LINES:
        return None
    narrow = [_as_byte(t) for t in types]
    return _TENSOR.get((narrow[0], narrow[1]))


def _as_byte(element_type: ElementType) -> ElementType:
    """Return s8 or u8 for a sub-byte integer, other types unchanged."""
    if element_type.is_integer and element_type.bits < 8:
        return S8 if element_type.kind == "signed" else U8
    return element_type
