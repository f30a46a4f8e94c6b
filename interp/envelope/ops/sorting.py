"""Enclose sorts: find the places that each element may take, then the elements at each place.

An element may be at any place that leaves room for all that must come before it and all that must
come after it. The result at a place is the hull of the elements that may be there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo.values import Array
from hlo.walk import Callee, live
from interp.algorithms import stable_sort
from interp.envelope import budget
from interp.envelope.boolean_masks import is_ever, never
from interp.envelope.complex_numbers import joined, parts
from interp.envelope.enclosure import (
    Enclosure,
    Value,
    finfo,
    is_certain,
    is_nan,
    moved,
    point,
    where,
)
from interp.envelope.folds.fold_orders import on_points
from interp.envelope.interval_rules import has_zero
from interp.envelope.ops.zero_keys import is_a_zero, levels_zeros
from interp.exact.conversion import type_of, widened

__all__ = ["sort", "topk"]


_MOST_PAIRS = 1 << 22  # of elements and places; beyond, an element may be anywhere in its row


@dataclass(frozen=True, slots=True)
class _Ranks:
    """The least and the greatest rank that each element of a row may have. Element a must come
    before b if a's greatest rank is below b's least one."""

    low: Array
    high: Array

    def over(self, other: _Ranks, mask: Array) -> _Ranks:
        """Take these ranks in the rows of the mask, the other ones elsewhere."""
        return _Ranks(np.where(mask, self.low, other.low), np.where(mask, self.high, other.high))


def sort(
    *operands: Enclosure,
    dimensions: tuple[int, ...],
    to_apply: Callee[Any],
    is_stable: bool = False,
) -> Value:
    """Enclose a sort. Equal elements may come in any order unless it is stable. Of uncertain
    numbers the k-th is between the k-th of the low ends and the k-th of the high ends."""
    (axis,) = dimensions
    rows = [moved(lambda x: np.moveaxis(x, axis, -1), x) for x in operands]
    if rows[0].shape[-1] > 1 and rows[0].low.size:
        rows = _sorted(rows, to_apply, is_stable or budget.current() is budget.EXACT)
    results = tuple(moved(lambda x: np.moveaxis(x, -1, axis), x) for x in rows)
    return results if len(results) > 1 else results[0]


def topk(operand: Enclosure, *, k: int, largest: bool = True, is_stable: bool = True) -> Value:
    """Enclose top-k, as the first k of a descending sort of the elements, with their indices, by
    total order."""
    indices = np.broadcast_to(np.arange(operand.shape[-1], dtype=np.int32), operand.shape)
    rows = [operand, point(indices)]
    if operand.shape[-1] > 1 and operand.low.size:
        is_fixed = is_stable or budget.current() is budget.EXACT
        order = stable_sort.ranking(operand.low, descending=largest)
        compared = _tied(operand)
        groups = _groups(np.take_along_axis(stable_sort.keys(operand.low), order, -1))
        ranks = _certain_ranks(order, groups, is_fixed)
        uncertain = np.asarray(~is_certain(compared).all(axis=-1, keepdims=True))
        if is_ever(uncertain):
            ends = stable_sort.keys(compared.low), stable_sort.keys(compared.high)
            ranks = _numbered(*ends, falls=largest).over(ranks, uncertain)
        with_nan = np.asarray(operand.nan.any(axis=-1, keepdims=True))
        if budget.current() is budget.EXACT:  # for which -NaN is the least, where all is certain
            with_nan &= uncertain
        ranks = _unknown(order.shape).over(ranks, with_nan)
        rows = [_placed(row, ranks) for row in rows]
    return tuple(moved(lambda x: x[..., :k], x) for x in rows)


def _sorted(rows: list[Enclosure], to_apply: Callee[Any], is_stable: bool) -> list[Enclosure]:
    comparator = on_points(to_apply)
    read = _read(to_apply)
    keys = [_tied(rows[number]) for number in read]
    lows = tuple(row.low for row in rows)
    order = stable_sort.sorting_order(lows, comparator)
    inside = [np.take_along_axis(x, order, -1) for x in lows]
    groups, orderly = _compared(inside, read, comparator)
    if any(is_nan(x).any() for x in inside):  # whose signs are open
        # A total order has -NaN first and NaN last, so the order must hold with either sign.
        others = [np.where(is_nan(x), -x, x) if is_nan(x).any() else x for x in inside]
        with_others, orderly_too = _compared(others, read, comparator)
        orderly &= orderly_too & (with_others == groups).all(axis=-1, keepdims=True)
    ranks = _certain_ranks(order, groups, is_stable)
    if budget.current() is not budget.EXACT:
        # By a comparator that is no consistent order (LT with NaN, which is level with all numbers)
        # any permutation is legal: algorithms compare other pairs.
        ranks = ranks.over(_unknown(order.shape), orderly)
    uncertain = np.zeros((*order.shape[:-1], 1), np.bool_)
    for key in keys:
        known = is_certain(key)
        if not known.all() and levels_zeros(rows, read, key, comparator):
            known = known | is_a_zero(key)
        uncertain |= ~known.all(axis=-1, keepdims=True)
    if not is_ever(uncertain):
        return [_placed(row, ranks) for row in rows]
    direction = _direction(rows, read, keys, to_apply, comparator)
    numbers = _unknown(order.shape)
    if direction:
        numbers = _numbered(keys[0].low, keys[0].high, falls=direction < 0)
    ranks = numbers.over(ranks, uncertain)
    results = [_placed(row, ranks) for row in rows]
    if direction:
        ends = [_in_order(end, direction < 0) for end in keys[0].ends()]
        low, high = _with_either_zero(keys[0], ends[0], ends[-1])
        by_ends = Enclosure(low, high, never(low.shape))
        results[read[0]] = where(uncertain, by_ends, results[read[0]])
    return results


def _read(to_apply: Callee[Any]) -> list[int]:
    """List the numbers of the operands that the comparator depends on."""
    computation = to_apply.computation
    names = live(computation, lambda instruction: False)
    used = {name for i in computation.instructions if i.name in names for name in i.operands}
    used.add(computation.root)
    return sorted({n // 2 for n, p in enumerate(computation.parameters) if p.name in used})


def _compared(
    inside: Sequence[Array], read: Sequence[int], comparator: Callee[Any]
) -> tuple[Array, Array]:
    """Number the groups of equal elements in sorted rows, and test in which rows the comparator is
    a consistent order: for elements 1, 2, 4, … apart, and for each element beside the last one of
    the group before, the first one of the next, and the first number of its own. It fails with a
    NaN that is equal to numbers that differ."""
    size = inside[0].shape[-1]
    before = _beside(inside, comparator, 1, forwards=True)
    groups = np.zeros(inside[0].shape, np.int64)
    groups[..., 1:] = np.cumsum(before, axis=-1)
    orderly = ~_beside(inside, comparator, 0, forwards=True).any(axis=-1, keepdims=True)
    apart = 1
    while apart < size:
        ahead = groups[..., :-apart] < groups[..., apart:]
        for forwards in (True, False):
            found = _beside(inside, comparator, apart, forwards=forwards)
            orderly &= (found == (ahead & forwards)).all(axis=-1, keepdims=True)
        apart *= 2
    before = np.concatenate([np.ones((*before.shape[:-1], 1), np.bool_), before], axis=-1)
    orderly &= _beside_groups(inside, comparator, before)
    return groups, np.asarray(orderly & _beside_numbers(inside, read, comparator, groups))


def _beside_groups(inside: Sequence[Array], comparator: Callee[Any], begins: Array) -> Array:
    """Test in which rows every element comes after the last of the group before its own, and before
    the first of the next."""
    size = begins.shape[-1]
    places = np.broadcast_to(np.arange(size), begins.shape)
    last = np.maximum.accumulate(np.where(begins, places, 0), axis=-1) - 1
    following = np.where(begins, places, size)[..., ::-1]
    following = np.minimum.accumulate(following, axis=-1)[..., ::-1]
    first = np.concatenate([following[..., 1:], np.full_like(last[..., :1], size)], axis=-1)
    orderly = np.ones((*begins.shape[:-1], 1), np.bool_)
    for other, is_before in ((last, True), (first, False)):
        there = (other >= 0) & (other < size)
        others = [np.take_along_axis(x, np.where(there, other, 0), -1) for x in inside]
        pairs = list(zip(others, inside) if is_before else zip(inside, others))
        ahead = comparator(*(side for pair in pairs for side in pair))
        behind = comparator(*(side for pair in pairs for side in pair[::-1]))
        orderly &= ~(there & ~(ahead & ~behind)).any(axis=-1, keepdims=True)
    return orderly


def _beside_numbers(
    inside: Sequence[Array], read: Sequence[int], comparator: Callee[Any], groups: Array
) -> Array:
    """Test in which rows no element comes before or after the first of its group in whose operands
    that the comparator reads there is no NaN."""
    size = groups.shape[-1]
    if not any(is_nan(inside[number]).any() for number in read):
        return np.ones((*groups.shape[:-1], 1), np.bool_)
    places = np.broadcast_to(np.arange(size), groups.shape)
    numbers = ~np.logical_or.reduce([is_nan(inside[number]) for number in read])
    first = np.full(groups.size, size)
    number = groups.reshape(-1) + np.repeat(np.arange(groups.size // size) * size, size)
    np.minimum.at(first, number, np.where(numbers, places, size).reshape(-1))
    first = first[number].reshape(groups.shape)
    there = first < size
    others = [np.take_along_axis(x, np.where(there, first, 0), -1) for x in inside]
    apart = np.zeros(groups.shape, np.bool_)
    for pairs in (zip(others, inside, strict=True), zip(inside, others, strict=True)):
        apart |= comparator(*(side for pair in pairs for side in pair))
    return np.asarray(~(there & apart).any(axis=-1, keepdims=True))


def _beside(
    inside: Sequence[Array], comparator: Callee[Any], apart: int, *, forwards: bool
) -> Array:
    """Compare each element with the one ``apart`` places after it."""
    size = inside[0].shape[-1]
    pairs = ((x[..., : size - apart], x[..., apart:]) for x in inside)
    sides = (side for pair in pairs for side in (pair if forwards else pair[::-1]))
    return np.broadcast_to(comparator(*sides), (*inside[0].shape[:-1], size - apart))


def _groups(keys: Array) -> Array:
    groups = np.zeros(keys.shape, np.int64)
    groups[..., 1:] = np.cumsum(keys[..., 1:] != keys[..., :-1], axis=-1)
    return groups


def _certain_ranks(order: Array, groups: Array, is_stable: bool) -> _Ranks:
    """Make the ranks of certain elements: their place in ``order`` if the sort is stable, else the
    number of their group."""
    ranks = np.empty(order.shape, np.int64)
    places = np.broadcast_to(np.arange(order.shape[-1]), order.shape)
    np.put_along_axis(ranks, order, places if is_stable else groups, -1)
    return _Ranks(ranks, ranks)


def _unknown(dims: tuple[int, ...]) -> _Ranks:
    none = np.zeros(dims, np.int64)
    return _Ranks(none, none)


def _numbered(low: Array, high: Array, *, falls: bool) -> _Ranks:
    """Make ranks from intervals of numbers: the ranks of their ends among all ends."""
    ends = np.stack([low, high])
    ranks = np.unique(ends, return_inverse=True)[1].reshape(ends.shape)
    return _Ranks(-ranks[1], -ranks[0]) if falls else _Ranks(ranks[0], ranks[1])


# With bits, which JAX and XLA compare as integers, but without arithmetic.
_COMPARES = frozenset(
    (
        *("parameter", "constant", "compare", "select", "and", "or", "not", "xor"),
        *("bitcast", "bitcast-convert", "broadcast", "copy", "reshape"),
    )
)


def _direction(
    rows: Sequence[Enclosure],
    read: Sequence[int],
    keys: Sequence[Enclosure],
    to_apply: Callee[Any],
    comparator: Callee[Any],
) -> int:
    """Return 1 or -1 if the comparator orders one operand's numbers upwards or downwards, tested on
    all ends (an order of their floors, say, is none); 0 for any other comparator."""
    if len(read) != 1 or is_ever(keys[0].nan) or keys[0].element_type.is_complex:
        return 0
    if not all(i.opcode in _COMPARES for i in to_apply.computation.instructions):
        return 0
    ends = np.concatenate([widened(end).reshape(-1) for end in keys[0].ends()])
    numbers = np.unique(ends).astype(keys[0].low.dtype)
    sides = [
        [numbers[:-1], numbers[1:]]
        if number == read[0]
        else [np.zeros(len(numbers) - 1, row.low.dtype)] * 2
        for number, row in enumerate(rows)
    ]
    up = comparator(*(side for pair in sides for side in pair))
    down = comparator(*(side for pair in sides for side in pair[::-1]))
    return int((up & ~down).all()) or -int((down & ~up).all())


def _in_order(end: Array, falls: bool) -> Array:
    order = np.argsort(widened(end), axis=-1, kind="stable")
    return np.take_along_axis(end, order[..., ::-1] if falls else order, -1)


def _with_either_zero(keys: Enclosure, low: Array, high: Array) -> tuple[Array, Array]:
    """Admit zeros of either sign at each place of a zero, in rows whose keys may be both: in which
    order they come depends on the comparator, and on where the key is that an interval around zero
    turns out to be."""
    ends = low, high
    if not type_of(low).is_float:
        return ends
    may_be_zero = has_zero(keys)
    negative = may_be_zero & np.signbit(keys.low)
    positive = may_be_zero & ~np.signbit(keys.high)
    has_both = negative.any(axis=-1, keepdims=True) & positive.any(axis=-1, keepdims=True)
    either = (low == 0) & (high == 0) & has_both
    zero = np.zeros((), low.dtype)
    return np.where(either, -zero, low), np.where(either, zero, high)


def _placed(row: Enclosure, ranks: _Ranks) -> Enclosure:
    """Enclose the element at each place by the hull of all that may be there."""
    if row.element_type.is_complex:
        return joined(*(_placed(part, ranks) for part in parts(row)))
    first, last = _places(ranks)
    size = row.shape[-1]
    if (first == last).all():
        order = np.empty_like(first)
        numbers = np.broadcast_to(np.arange(size), first.shape)
        np.put_along_axis(order, first, numbers, -1)
        return moved(lambda x: np.take_along_axis(x, order, -1), row)
    spans = (last - first + 1).reshape(-1)
    if spans.sum() > _MOST_PAIRS:
        begins = np.arange(0, row.low.size, size)
        whole = _hulls(row, np.arange(row.low.size), begins, (*row.shape[:-1], 1))
        return moved(lambda x: np.broadcast_to(x, row.shape), whole)
    starts = np.arange(0, row.low.size, size).reshape(*row.shape[:-1], 1) + first
    elements = np.repeat(np.arange(spans.size), spans)
    steps = np.arange(len(elements)) - np.repeat(np.cumsum(spans) - spans, spans)
    targets = np.repeat(starts.reshape(-1), spans) + steps
    pairs = np.argsort(targets, kind="stable")
    begins = np.searchsorted(targets[pairs], np.arange(spans.size))
    return _hulls(row, elements[pairs], begins, row.shape)


def _places(ranks: _Ranks) -> tuple[Array, Array]:
    """Return the first and the last place that each element may take."""
    low, high = ranks.low, ranks.high
    size, least = low.shape[-1], int(min(low.min(), high.min()))
    room = int(max(low.max(), high.max())) - least + 1
    rows = np.arange(low.size // size).reshape(*low.shape[:-1], 1)
    lows, highs = (x - least + rows * room for x in (low, high))
    # Rows are `room` apart, so that one search serves all: every rank of an earlier row counts as
    # lower, which `rows * size` takes off.
    before = np.searchsorted(np.sort(highs.reshape(-1)), lows, "left")
    behind = np.searchsorted(np.sort(lows.reshape(-1)), highs, "right")
    return before - rows * size, behind - rows * size - 1


def _hulls(row: Enclosure, elements: Array, begins: Array, dims: tuple[int, ...]) -> Enclosure:
    """Enclose each run of ``elements``, the runs starting at ``begins``, by its hull."""
    low, high = (
        _best(end, elements, begins, better).reshape(dims)
        for end, better in ((row.low, np.minimum), (row.high, np.maximum))
    )
    nan = np.broadcast_to(row.nan, row.shape).reshape(-1)[elements]
    return Enclosure(low, high, np.logical_or.reduceat(nan, begins).reshape(dims))


def _best(end: Array, elements: Array, begins: Array, better: np.ufunc) -> Array:
    """Return the least or the greatest of each run; NaN only of runs that have nothing else."""
    flat = np.ascontiguousarray(end).reshape(-1)
    keys = stable_sort.keys(flat)
    if better is np.maximum and is_nan(flat).any():
        keys = np.where(is_nan(flat), np.iinfo(keys.dtype).min, keys)
    # Extremes of ranks, not of numbers: np.minimum passes a NaN on and does not order -0 below +0.
    order = np.argsort(keys, kind="stable")
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return flat[order[better.reduceat(ranks[elements], begins)]]


def _tied(keys: Enclosure) -> Enclosure:
    """Widen keys that may be subnormal to all subnormals, where a peer that flushes finds them
    equal."""
    if not keys.element_type.is_float or not budget.current().flushes:
        return keys
    tiny = finfo(keys.low.dtype).smallest_normal
    near = (keys.low < tiny) & (keys.high > -tiny)
    zeros = (keys.low == 0) & (keys.high == 0)
    if not (near & ~zeros).any():
        return keys
    low = np.where(near, np.minimum(keys.low, -tiny), keys.low)
    high = np.where(near, np.maximum(keys.high, tiny), keys.high)
    return Enclosure(low, high, keys.nan)
