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

# Narrow integers, f8 and narrower floats.
UNUSUAL_TYPES: tuple[ElementType, ...] = tuple(
    t for t in ELEMENT_TYPES.values() if t.is_array and t not in TYPES
)

# Every type of data.
ALL_TYPES: tuple[ElementType, ...] = TYPES + UNUSUAL_TYPES

# Types that compilers treat alike. A kind is drawn first where all types may be: what no other type
# is like, as f8e8m0fnu, has code of its own, and is one of thirty-two.
UNUSUAL_KINDS: tuple[tuple[ElementType, ...], ...] = tuple(
    tuple(ELEMENT_TYPES[name] for name in names.split())
    for names in (
        *("s1 s2 u2", "u1 s4 u4", "f4e2m1fn f6e2m3fn f6e3m2fn"),
        *("f8e3m4 f8e4m3 f8e5m2", "f8e4m3b11fnuz f8e4m3fn f8e4m3fnuz f8e5m2fnuz", "f8e8m0fnu"),
    )
)
_KINDS = (
    *(tuple(t for t in TYPES if t.kind == kind) for kind in ("pred", "signed", "unsigned")),
    *(tuple(t for t in TYPES if t.kind == kind) for kind in ("float", "complex")),
    *UNUSUAL_KINDS,
)
_KIND = {t.name: number for number, kind in enumerate(_KINDS) for t in kind}

# Enough for vector lanes, tails and threads; small enough for hundreds of programs a minute.
MOST_ELEMENTS = 1 << 12

MOST_RANK = 5

_TRIES = 20  # of dimensions that may not be accepted

_LARGE = (7, 8, 9, 16, 31, 32, 33, 64, 100, 257)
# From 4,096 elements on XLA has reductions and others computed by a library, whose maximum of NaN
# is another; compilers start threads at some size, too.
_LONG = (1000, 1024, 2049, 4096, 5000, 8192, 10000)

# Elements of one, two, three and more vectors of 16, 32 and 64 bytes; one less, which is nearly all
# tail, and one more.
_AROUND_VECTORS = tuple(n + d for n in (16, 32, 48, 64, 96, 128) for d in (0, -1, 0, 1))

# Types of vector elements by their width: what packs, unpacks and shuffles them is other code for
# each width, and narrow ones have most of it.
_BY_WIDTH = (
    *(("u8", "s8", "pred", "f8e4m3fn", "u4"), ("u16", "s16", "bf16", "f16")),
    *(("u32", "s32", "f32"), ("u64", "s64", "f64")),
)
# What is read in vectors of four bytes and packed into bytes is what gcc 12 got wrong.
_PACKED = (("u8", "s8"), ("u8", "s8"), ("u32", "s32", "f32"), ("u32", "s32", "f32"))
VECTOR_TYPES = tuple(ELEMENT_TYPES[name] for names in _BY_WIDTH for name in names)

Accepts = Callable[[ArrayShape], bool]


def nonzero(dims: Sequence[int]) -> int:
    """Return the number of elements, counting dimensions of size 0 as 1."""
    return math.prod(size or 1 for size in dims)


def size_to(choices: Choices, most: int) -> int:
    """Draw the size of a dimension up to ``most``: rarely 0."""
    if most < 1 or choices.empty():
        return 0
    return choices.integer(1, most)


def extent(choices: Choices, most: int) -> int:
    """Draw the size of a dimension: small, next to a power of two, or rarely long, or 0."""
    if choices.empty():
        return 0
    long = [size for size in _LONG if size <= most]
    if long and choices.long():
        return choices.choice(long)
    large = [size for size in _LARGE if size <= most]
    if large and choices.boolean():
        return choices.choice(large)
    return choices.integer(1, min(5, max(1, most)))


def dims(choices: Choices, ranks: Sequence[int], most: int = MOST_ELEMENTS) -> tuple[int, ...]:
    """Draw the sizes of dimensions, whose number is one of ``ranks``."""
    chosen: list[int] = []
    for _ in range(choices.choice(ranks)):
        chosen.append(extent(choices, most // nonzero(chosen)))
    return tuple(chosen)


def vector_type(choices: Choices) -> ElementType:
    """Draw an element type for vectors: of any width, bytes and words most often."""
    return ELEMENT_TYPES[choices.choice(choices.choice((*_BY_WIDTH, *_PACKED)))]


def by_kind(choices: Choices, types: Sequence[ElementType]) -> ElementType:
    """Draw one of some types: its kind first, if there are unusual types among them."""
    kinds: dict[int, list[ElementType]] = {}
    for element_type in types:
        kinds.setdefault(_KIND[element_type.name], []).append(element_type)
    if max(kinds) < len(_KINDS) - len(UNUSUAL_KINDS):  # the unusual kinds are numbered last
        return choices.choice(types)
    return choices.choice(choices.choice([*kinds.values()]))


def unusual_type(choices: Choices) -> ElementType:
    """Draw an unusual type, each kind of them as likely as another."""
    return choices.choice(choices.choice(UNUSUAL_KINDS))


def row(choices: Choices) -> ArrayShape:
    """Draw a few rows that just fit into vectors, or do not."""
    before = tuple(choices.integer(1, 5) for _ in range(choices.integer(0, 2)))
    return ArrayShape(vector_type(choices), (*before, choices.choice(_AROUND_VECTORS)))


def _ranks(element_type: ElementType, accepts: Accepts) -> list[int]:
    return [r for r in range(MOST_RANK + 1) if accepts(ArrayShape(element_type, (2,) * r))]


def admitted(types: Sequence[ElementType], accepts: Accepts) -> list[ElementType]:
    """List the types of which ``accepts`` admits an array of two elements in each dimension."""
    return [t for t in types if _ranks(t, accepts)]


def shape(
    choices: Choices,
    types: Sequence[ElementType] = TYPES,
    accepts: Accepts = lambda shape: True,
    most: int = MOST_ELEMENTS,
) -> ArrayShape:
    """Draw a shape of rank 0 to MOST_RANK that ``accepts`` admits. Which element types and ranks
    are admitted is asked first, with two elements in each dimension."""
    element_type = choices.choice(admitted(types, accepts))
    ranks = _ranks(element_type, accepts)
    for _ in range(_TRIES):
        chosen = ArrayShape(element_type, dims(choices, ranks, most))
        if accepts(chosen):
            return chosen
    return ArrayShape(element_type, (2,) * ranks[0])
