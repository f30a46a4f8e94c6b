"""Choose the inner kernel of a matrix product in the runtime: types in memory, and of sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from backend_c.kernels.parts.contraction.factors import Factors
from hlo.types import BF16, F32, S16, S32, U32, ElementType

_FEW = 4  # rows, columns or steps, for which plain loops take less time


class Product(NamedTuple):
    """Describe an inner kernel, hlo_gemm_``name``, and its packing, hlo_gemm_``name``_pack.

    ``left`` and ``right`` are the types of factors in memory. ``room`` maps k to the elements of
    type ``panel`` that a packed column takes; None stands for runtime/hlo_gemm.h, whose columns
    take k. Other kernels need left factors of a row side by side. ``is_checked``: the kernel takes
    what hlo_gemm_``name``_least found in the left factors.
    """

    name: str
    left: ElementType
    right: ElementType
    sums: ElementType
    panel: ElementType
    room: Callable[[int], int] | None = None
    is_checked: bool = False

    def rows(self, k: int) -> int:
        """Return the number of elements of type ``panel`` in a packed column of right factors."""
        return k if self.room is None else self.room(k)


def plain_product(sums: ElementType) -> Product:
    """Return the kernel for factors of the type of their sums (runtime/hlo_gemm.h)."""
    return Product(str(sums), sums, sums, sums, sums)


def integer_product(
    factors: Factors, types: tuple[ElementType, ElementType], result: ElementType
) -> Product | None:
    """Return the kernel for integers of at most 16 bits, modulo 2**32.

    None for wider ones, for wider results, and where plain loops take less time.
    """
    if not (result.is_integer and result.bits <= 32):
        return None
    if min(factors.m, factors.n, factors.k) <= _FEW:
        return None
    sums = S32 if result is S32 else U32
    if all(t.is_integer and t.bits <= 8 for t in types):
        name = "bytes_" + "".join("s" if t.kind == "signed" else "u" for t in types)
        return Product(name, *types, sums, U32, _byte_room)
    if all(t.is_integer and (t.bits <= 8 or t is S16) for t in types):
        return Product("s16", S16, S16, sums, U32, _s16_words)
    return None


def bf16_product(factors: Factors, types: tuple[ElementType, ElementType]) -> Product | None:
    """Return the kernel for bf16 with sums of f32; None for other types, or few factors."""
    if types != (BF16, BF16) or min(factors.m, factors.n, factors.k) <= _FEW:
        return None
    return Product("bf16", BF16, BF16, F32, F32, _bf16_words, is_checked=True)


def _byte_room(k: int) -> int:
    """Return the words of a packed column of bytes, as HLO_BYTES_ROOM.

    There is room for two s16 in each, which processors without products of bytes multiply, and for
    the sum of the column.
    """
    return -(-k // 4) * 2 + 1


def _s16_words(k: int) -> int:
    """Return the words of a packed column of s16, as HLO_S16_ROOM."""
    return -(-k // 2) + 1


def _bf16_words(k: int) -> int:
    """Return the words of a packed column of bf16, as HLO_BF16_ROOM.

    There is room for an f32 in each, as they are multiplied without instructions of bf16,
    and for the least magnitudes.
    """
    return k + 1
