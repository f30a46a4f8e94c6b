"""Strategies of element types and shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import strategies as st

from hlo.types import ELEMENT_TYPES, ArrayShape, ElementType

# What every generator and backend takes; the simplest first.
TYPES: tuple[ElementType, ...] = tuple(
    ELEMENT_TYPES[name]
    for name in "f32 s32 pred f64 bf16 f16 s8 s16 s64 u8 u16 u32 u64".split()  # noqa: SIM905 (a list of 13 quoted names is no easier to read)
)

# Enough for vector lanes, tails and threads; small enough for hundreds of programs a minute.
MOST_ELEMENTS = 1 << 12

MOST_RANK = 5


def nonzero(dims: Sequence[int]) -> int:
    """The number of elements if the empty dimensions had one."""
    return math.prod(size or 1 for size in dims)


def extents(most: int) -> st.SearchStrategy[int]:
    """Sizes of a dimension: small ones, none, and those around powers of two."""
    small, large = st.integers(1, min(5, max(1, most))), [0, 7, 8, 9, 16, 31, 32, 33, 64, 100, 257]
    return st.one_of(small, st.sampled_from([size for size in large if size <= most]))


@st.composite
def dims(draw: st.DrawFn, most_rank: int = MOST_RANK, most: int = MOST_ELEMENTS) -> tuple[int, ...]:
    rank = draw(st.integers(0, most_rank))
    chosen: list[int] = []
    for _ in range(rank):
        chosen.append(draw(extents(most // nonzero(chosen))))
    return tuple(chosen)


@st.composite
def shapes(draw: st.DrawFn, types: Sequence[ElementType] = TYPES) -> ArrayShape:
    return ArrayShape(draw(st.sampled_from(types)), draw(dims()))
