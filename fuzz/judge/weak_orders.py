"""Test whether comparators of sorts are strict weak orders of their operands, and say why not.

XLA's and StableHLO's sorts mean something for a strict weak order alone: no element comes before
itself, of two that differ at most one comes before the other, and both "comes before" and "is level
with" are transitive. Comparisons of floats by total order are one; LT and GT are one but for NaN,
which is level with all numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlo.values import Array
from hlo.walk import Callee
from interp.exact.conversion import type_of, widened

# 2^18 comparisons at most, of 64 rows with 64² pairs.
_MOST = 64  # elements of a row, and rows, of which all pairs are compared
_WHY = "a sort by what is no strict weak order"
_NOT_AFTER = "{0} comes before {1} and that before {2}, but the first not before the last"
_NOT_LEVEL = "{1} is level with {0} and with {2}, of which one comes before the other"


def disorder(
    *operands: Array, dimensions: tuple[int, ...], to_apply: Callee[Any], **_: Any
) -> str | None:
    """Return why a comparator is no strict weak order of the first elements of a sort's operands,
    with these elements and what helps, or None."""
    (dimension,) = dimensions
    before = _relation(operands, dimension, to_apply)
    return _symmetry(before, operands, dimension) or _loop(before, operands, dimension)


def symmetry(
    *operands: Array, dimensions: tuple[int, ...], to_apply: Callee[Any], **_: Any
) -> str | None:
    """Return which elements come before each other, or one before itself, or None. A compiled sort
    may not end there, and read beyond its operands."""
    (dimension,) = dimensions
    return _symmetry(_relation(operands, dimension, to_apply), operands, dimension)


def _symmetry(before: Array, operands: Sequence[Array], dimension: int) -> str | None:
    """Name two elements that come before each other, or one that comes before itself."""
    found = np.argwhere(before & np.swapaxes(before, 1, 2))
    if not len(found):
        return None
    row, one, other = map(int, found[0])
    first, second = (_named(operands, dimension, row, place) for place in (one, other))
    both = f"{first} and {second} come before each other"
    what = f"{first} comes before itself" if one == other else both
    return f"{_WHY}: {what}; compare by LT or GT, not by LE or GE"


def _loop(before: Array, operands: Sequence[Array], dimension: int) -> str | None:
    """Name three elements that have no order."""
    level = ~before & ~np.swapaxes(before, 1, 2)
    for related, said in ((before, _NOT_AFTER), (level, _NOT_LEVEL)):
        # Whether a path of two steps leads from a to b is a matrix product, which NumPy gives to
        # BLAS for floats only; counts of up to 64 paths are exact.
        numbers = related.astype(np.float32)
        found = np.argwhere((numbers @ numbers > 0) & ~related)
        if not len(found):
            continue
        row, one, other = map(int, found[0])
        middle = int(np.argmax(related[row, one] & related[row, :, other]))
        what = said.format(
            *(_named(operands, dimension, row, place) for place in (one, middle, other))
        )
        return f"{_WHY}: {what}{_way_out(operands)}"
    return None


def _way_out(operands: Sequence[Array]) -> str:
    if any(type_of(x).is_inexact and np.isnan(widened(x)).any() for x in operands):
        return "; compare by total order (type=TOTALORDER), or leave NaN out"
    return ""


def _relation(operands: Sequence[Array], dimension: int, to_apply: Callee[Any]) -> Array:
    """Compare all pairs of each row: ``result[row, a, b]`` where a comes before b."""
    rows = [np.moveaxis(x, dimension, -1) for x in operands]
    if rows[0].size == 0 or rows[0].shape[-1] < 2:
        return np.zeros((0, 0, 0), np.bool_)
    rows = [x.reshape(-1, x.shape[-1])[:_MOST, :_MOST] for x in rows]
    count, length = rows[0].shape
    sides = [np.broadcast_to(x[:, :, None], (count, length, length)) for x in rows]
    pairs = [side for lhs in sides for side in (lhs, np.swapaxes(lhs, 1, 2))]
    flat = to_apply(*(np.ascontiguousarray(x).reshape(-1) for x in pairs))
    found = np.broadcast_to(flat, (count * length * length,))
    return np.asarray(found).reshape(sides[0].shape)


def _named(operands: Sequence[Array], dimension: int, row: int, place: int) -> str:
    """Format an element of a sort: its index, and its value in each operand."""
    dims = np.moveaxis(operands[0], dimension, -1).shape[:-1]
    index = list(map(int, np.unravel_index(row, dims))) if dims else []
    index.insert(dimension % operands[0].ndim, place)
    values = ", ".join(str(x[tuple(index)]) for x in operands)
    return f"element [{','.join(map(str, index))}] ({values})"
