"""Draw element types and shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fuzz.draw.choices import Choices
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

_TRIES = 20  # of dimensions that may not be accepted

_LARGE = (0, 7, 8, 9, 16, 31, 32, 33, 64, 100, 257)

Accepts = Callable[[ArrayShape], bool]


def nonzero(dims: Sequence[int]) -> int:
    """Count the elements, with 1 in place of dimensions of size 0."""
    return math.prod(size or 1 for size in dims)


def extent(choices: Choices, most: int) -> int:
    """Draw the size of a dimension: small, zero, or next to a power of two."""
    if choices.boolean():
        return choices.choice([size for size in _LARGE if size <= most])
    return choices.integer(1, min(5, max(1, most)))


def dims(choices: Choices, ranks: Sequence[int], most: int = MOST_ELEMENTS) -> tuple[int, ...]:
    """Draw the sizes of as many dimensions as one of ``ranks``."""
    chosen: list[int] = []
    for _ in range(choices.choice(ranks)):
        chosen.append(extent(choices, most // nonzero(chosen)))
    return tuple(chosen)


def _ranks(element_type: ElementType, accepts: Accepts) -> list[int]:
    return [r for r in range(MOST_RANK + 1) if accepts(ArrayShape(element_type, (2,) * r))]


def shape(
    choices: Choices,
    types: Sequence[ElementType] = TYPES,
    accepts: Accepts = lambda shape: True,
    most: int = MOST_ELEMENTS,
) -> ArrayShape:
    """Draw a shape of rank 0 to MOST_RANK that ``accepts`` admits. Which element types and ranks
    are admitted is asked first, with two elements in each dimension."""
    element_type = choices.choice([t for t in types if _ranks(t, accepts)])
    ranks = _ranks(element_type, accepts)
    for _ in range(_TRIES):
        chosen = ArrayShape(element_type, dims(choices, ranks, most))
        if accepts(chosen):
            return chosen
    return ArrayShape(element_type, (2,) * ranks[0])
