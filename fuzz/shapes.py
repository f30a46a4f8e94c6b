"""Strategies of element types and shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

from hypothesis import strategies as st

from hlo.types import ELEMENT_TYPES, ArrayShape, ElementType

# What most programs are made of; the simplest first.
TYPES: tuple[ElementType, ...] = tuple(
    ELEMENT_TYPES[name]
    for name in "f32 s32 pred f64 bf16 f16 s8 s16 s64 u8 u16 u32 u64 c64 c128".split()  # noqa: SIM905 (a list of 15 quoted names is no easier to read)
)

# Every type of data.
ALL_TYPES: tuple[ElementType, ...] = TYPES + tuple(
    t for t in ELEMENT_TYPES.values() if t.is_array and t not in TYPES
)

# Enough for vector lanes, tails and threads; small enough for hundreds of programs a minute.
MOST_ELEMENTS = 1 << 12

MOST_RANK = 5

_LARGE = (0, 7, 8, 9, 16, 31, 32, 33, 64, 100, 257)

Accepts = Callable[[ArrayShape], bool]


def nonzero(dims: Sequence[int]) -> int:
    """The number of elements if the empty dimensions had one."""
    return math.prod(size or 1 for size in dims)


def extents(most: int) -> st.SearchStrategy[int]:
    """Sizes of a dimension: small ones, none, and those around powers of two."""
    return _extents(min(5, max(1, most)), sum(size <= most for size in _LARGE))


@cache  # a strategy that is there already is validated
def _extents(most: int, count: int) -> st.SearchStrategy[int]:
    return st.one_of(st.integers(1, most), st.sampled_from(_LARGE[:count]))


@st.composite
def dims(draw: st.DrawFn, ranks: Sequence[int], most: int = MOST_ELEMENTS) -> tuple[int, ...]:
    """Sizes of as many dimensions as one of ``ranks``."""
    chosen: list[int] = []
    for _ in range(draw(st.sampled_from(ranks))):
        chosen.append(draw(extents(most // nonzero(chosen))))
    return tuple(chosen)


def _ranks(element_type: ElementType, accepts: Accepts) -> list[int]:
    return [r for r in range(MOST_RANK + 1) if accepts(ArrayShape(element_type, (2,) * r))]


@st.composite
def shapes(
    draw: st.DrawFn,
    types: Sequence[ElementType] = TYPES,
    accepts: Accepts = lambda shape: True,
    most: int = MOST_ELEMENTS,
) -> ArrayShape:
    """Shapes of any rank up to MOST_RANK that are accepted: what is asked first is which types and
    ranks are, with two elements in each dimension."""
    fitting = [t for t in types if _ranks(t, accepts)]
    element_type = draw(st.sampled_from(fitting))
    sizes = dims(_ranks(element_type, accepts), most)
    return draw(sizes.map(lambda chosen: ArrayShape(element_type, chosen)).filter(accepts))
