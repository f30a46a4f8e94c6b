"""Move floats by units in the last place, by integer arithmetic on their bit patterns."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from hlo.values import Array
from interp.envelope.boolean_masks import is_ever

# ml_dtypes has no types for it, and NumPy's own is slow to ask.
finfo: Any = cache(ml_dtypes.finfo)

_WORDS: dict[int, Any] = {2: np.int16, 4: np.int32, 8: np.int64}
# Elements that are moved one by one: an array of 8 takes 6 µs so, 9 by operations on arrays where
# none is odd, 23 where some may be; of 32 odd ones the last is as quick.
_FEW, _FEW_ODD = 8, 32


class _Facts(NamedTuple):
    """A float type's bit patterns: signed integers of its size, the bits of a magnitude, mantissa
    bits, infinity."""

    word: Any
    magnitude: int
    mantissa_bits: int
    infinity: int


@cache
def _facts(dtype: np.dtype[Any]) -> _Facts:
    word = _WORDS[dtype.itemsize]
    info = finfo(dtype)
    largest = int(np.asarray(info.max, dtype).view(word))
    return _Facts(word, int(np.iinfo(word).max), int(info.nmant), largest + 1)


def moves_by_bits(dtype: np.dtype[Any]) -> bool:
    """Test for types that :func:`moved` supports: floats of at least 16 bits."""
    return dtype.itemsize in _WORDS


def moved(ends: Array, ulps: int, upwards: bool, spans: bool) -> Array:
    """Move floats up or down by a number of ulps, beyond the largest to infinity. At a power of two
    the ulp is the larger one. With ``spans`` a power of two that is passed doubles the ulp, as the
    number to be moved may lie anywhere up to the other end. NaN stays."""
    facts = _facts(ends.dtype)
    bits = _bits(ends, facts)
    if ends.size <= _FEW:
        numbers = _moved_numbers(bits, facts, ulps, upwards, spans)
        return np.array(numbers, facts.word).reshape(ends.shape).view(ends.dtype)
    # Of evenly spread mantissas at most a quarter are then within ulps of a power of two.
    if 8 * ulps >= 1 << facts.mantissa_bits:
        return _moved(ends, facts, ulps, upwards, spans)
    steps = bits >> (8 * bits.itemsize - 1)
    steps |= facts.word(1)  # bits grow with the magnitude
    steps *= facts.word(ulps if upwards else -ulps)
    steps += bits
    odd = np.flatnonzero(_is_odd(ends, bits, facts, ulps))
    if odd.size > _FEW_ODD:
        steps.put(odd, _bits(_moved(ends.take(odd), facts, ulps, upwards, spans), facts))
    elif odd.size:
        steps.put(odd, _moved_numbers(bits.take(odd), facts, ulps, upwards, spans))
    return np.asarray(steps.view(ends.dtype))


def stepped(numbers: Array, mask: Array, *, upwards: bool) -> Array:
    """Replace f32 numbers by their neighbour above or below where the mask is set. They were
    rounded to nearest from the other side, so none is at the end of the range or at a zero it would
    have to cross."""
    bits = np.asarray(numbers).view(np.int32)
    signs = bits >> 31
    # 0 or ±1 with the number's sign, as (x ^ -1) - -1 = -x: bits grow with the magnitude.
    steps = (signs ^ mask) - signs
    return np.asarray((bits + steps if upwards else bits - steps).view(np.float32))


def _is_odd(ends: Array, bits: Array, facts: _Facts, ulps: int) -> Array:
    """Test for floats that :func:`moved` must treat one by one: within ``ulps`` of zero, infinity
    or another power of two, and NaN."""
    # The mantissa is that near to 0, modulo 2 to its bits.
    near = bits + facts.word(ulps)
    near &= facts.word((1 << facts.mantissa_bits) - 1)
    odd = np.asarray(near <= facts.word(2 * ulps))
    if np.isnan(ends.max()):
        odd |= np.isnan(ends)
    return odd


def _bits(ends: Array, facts: _Facts) -> Array:
    """View floats as signed integers."""
    return (ends if ends.flags.c_contiguous else ends.copy()).view(facts.word)


def _moved(ends: Array, facts: _Facts, ulps: int, upwards: bool, spans: bool) -> Array:
    """Move floats by ulps in all cases: across powers of two, through zero, and to infinity."""
    word, mantissa_bits = facts.word, facts.mantissa_bits
    bits = _bits(ends, facts)
    keys = _ordered(bits, facts)
    steps = np.full((), ulps, word)
    moved = keys + steps if upwards else keys - steps
    # Towards zero units halve below a power of two, of normal numbers.
    over_power = bits & word((1 << mantissa_bits) - 1)
    near = (over_power < steps) & ((keys < 0) if upwards else (keys > 0))
    # Below twice the least normal number the unit is that of the subnormals.
    near &= (bits & word(facts.magnitude)) >= word(1 << (mantissa_bits + 1))
    if is_ever(near):
        more = np.where(near, steps - over_power, 0).astype(word)
        moved = moved + more if upwards else moved - more
    if spans:  # and double beyond the next power, which may be between the ends
        to_power = word(1 << mantissa_bits) - over_power
        near = (to_power < steps) & ((keys < 0) if upwards else (keys > 0))
        more = np.where(near, steps - to_power, 0).astype(word)
        moved = moved + more if upwards else moved - more
    through_zero = (keys < 0) != (moved < 0)  # the two zeros are one number
    if is_ever(through_zero):
        moved = moved + through_zero if upwards else moved - through_zero
    top = word(facts.infinity)
    moved = np.clip(moved, -top - word(1), top)  # -inf: the key of -0 is -1, not 0
    result: Array = _ordered(moved, facts).view(ends.dtype)
    nan = np.isnan(ends)
    return np.where(nan, ends, result) if is_ever(nan) else result


def _moved_numbers(bits: Array, facts: _Facts, ulps: int, upwards: bool, spans: bool) -> list[int]:
    """Move a few floats, of signed bits, one by one."""
    return [_moved_number(x, facts, ulps, upwards, spans) for x in bits.reshape(-1).tolist()]


def _moved_number(bits: int, facts: _Facts, ulps: int, upwards: bool, spans: bool) -> int:
    """Move one float, of signed bits, as :func:`_moved` does an array, in a fraction of the
    time."""
    most, unit = facts.magnitude, 1 << facts.mantissa_bits
    if bits & most > facts.infinity:
        return bits  # a NaN
    key = bits if bits >= 0 else bits ^ most
    over_power = bits & (unit - 1)
    distance = ulps
    if key < 0 if upwards else key > 0:  # towards zero
        if over_power < ulps and bits & most >= 2 * unit:
            distance += ulps - over_power
        if spans and unit - over_power < ulps:
            distance += ulps - (unit - over_power)
    moved = key + distance if upwards else key - distance
    if (key < 0) != (moved < 0):  # the two zeros are one number
        moved += 1 if upwards else -1
    moved = min(max(moved, -facts.infinity - 1), facts.infinity)
    return moved if moved >= 0 else moved ^ most


def _ordered(bits: Array, facts: _Facts) -> Array:
    """Map bit patterns to integers ordered as the numbers are, −0 below +0; the map is its own
    inverse."""
    return np.asarray(bits ^ ((bits >> (8 * bits.itemsize - 1)) & facts.word(facts.magnitude)))
