"""Apply an elementwise rule block by block.

A rule passes thirty times and more over the ends of its operands. Blocks that stay in the cache are
up to four times as fast: of intervals of 3 million f32, products take 0.16 s instead of 0.28 and
quotients 0.13 instead of 0.54 (one core of a Xeon).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from hlo.values import Array
from interp.envelope.boolean_masks import is_ever, never
from interp.envelope.enclosure import Enclosure

BLOCK = 1 << 14  # elements: the dozen arrays of f32 that a rule works on fit into 1 MiB


def in_blocks(
    rule: Callable[..., Enclosure], operands: Sequence[Enclosure], block: int = BLOCK
) -> Enclosure:
    """Apply an elementwise rule to its operands, ``block`` elements at a time if they have more
    than two blocks. The result may be narrower than for the whole: one subnormal makes a rule widen
    all points that it is given with it. Operands of several shapes (a scalar ``clamp``), and
    integers, are left whole."""
    shape = operands[0].shape
    size = math.prod(shape)
    if size > 1 and all(x.shape == shape and is_uniform(x) for x in operands):
        return _repeated(rule(*map(_first, operands)), shape)
    fits = all(x.shape == shape and not x.element_type.is_integer for x in operands)
    if size < 2 * block or not fits:
        return rule(*operands)
    parts = [rule(*some) for some in _blocks(operands, size, block)]
    low = _joined([part.low for part in parts], shape)
    is_point = all(part.is_point for part in parts)
    high = low if is_point else _joined([part.high for part in parts], shape)
    if any(is_ever(part.nan) for part in parts):
        return Enclosure(low, high, _joined([part.nan for part in parts], shape))
    return Enclosure(low, high, never(shape))


def is_uniform(value: Enclosure) -> bool:
    """Test for a single element broadcast to a shape: all strides are zero."""
    # Asked for each operand of each instruction: written out it takes a quarter of the time.
    low, high, nan = value.low, value.high, value.nan
    return not (any(low.strides) or any(nan.strides) or any(high.strides))


def _first(value: Enclosure) -> Enclosure:
    """Take one element of a uniform value, as an array of the same rank."""
    first = (slice(1),) * len(value.shape)
    low, *high, nan = (array[first] for array in (*value.ends(), value.nan))
    return Enclosure(low, high[0] if high else low, nan)


def _repeated(value: Enclosure, shape: tuple[int, ...]) -> Enclosure:
    low, *high, nan = (np.broadcast_to(x, shape) for x in (*value.ends(), value.nan))
    return Enclosure(low, high[0] if high else low, nan)


def in_blocks_of(
    function: Callable[..., Sequence[Array]], arrays: Sequence[Array], block: int = BLOCK
) -> Sequence[Array]:
    """Apply an elementwise function to arrays of one shape, ``block`` elements at a time if they
    have more than two blocks; return its result arrays."""
    shape = arrays[0].shape
    if arrays[0].size < 2 * block:
        return function(*arrays)
    flat = [x.reshape(-1) for x in arrays]
    whole: list[Array] = []
    for start in range(0, math.prod(shape), block):
        found = function(*(x[start : start + block] for x in flat))
        if not whole:
            whole = [np.empty(math.prod(shape), x.dtype) for x in found]
        for one, part in zip(whole, found, strict=True):
            one[start : start + block] = part
    return [x.reshape(shape) for x in whole]


def any_in_blocks(test: Callable[..., Array], arrays: Sequence[Array]) -> bool:
    """Test whether an elementwise test of arrays of one shape holds anywhere, block by block up to
    the first one that has it."""
    flat = [x.reshape(-1) for x in arrays]
    starts = range(0, flat[0].size, BLOCK)
    return any(bool(test(*(x[n : n + BLOCK] for x in flat)).any()) for n in starts)


def _blocks(
    operands: Sequence[Enclosure], size: int, block: int
) -> Iterator[tuple[Enclosure, ...]]:
    """Split operands of one shape into blocks in row-major order; points stay points."""
    flat = {id(x): tuple(end.reshape(-1) for end in (*x.ends(), x.nan)) for x in operands}
    for start in range(0, size, block):
        parts: dict[int, Enclosure] = {}  # an operand that is given twice stays one
        for key, ends in flat.items():
            low, *high, nan = (end[start : start + block] for end in ends)
            parts[key] = Enclosure(low, high[0] if high else low, nan)
        yield tuple(parts[id(x)] for x in operands)


def _joined(parts: Sequence[Array], shape: tuple[int, ...]) -> Array:
    return np.concatenate(parts).reshape(shape)
