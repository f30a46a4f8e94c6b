"""Order the nodes of each layer of a graph such that few edges cross.

Layers are sorted by the barycentre of the neighbours in the layer before, down and up (Sugiyama,
Tagawa and Toda, 1981), and the order with the fewest crossings is kept. Then adjacent nodes of a
layer are exchanged wherever that removes crossings (Gansner, Koutsofios, North and Vo, 1993).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_MOST_SWEEPS = 40
_FIRST_COUNTED = 3  # of the sweeps: before it the order is hardly better than none
_MOST_WORSE = 6  # sweeps without fewer crossings, then no more
_MOST_PASSES = 10  # that exchange neighbours

Row = list[int]
Neighbours = Sequence[Sequence[int]]  # of each item, in the layer above or below


def with_few_crossings(
    rows: Sequence[Row], above: Neighbours, below: Neighbours, sizes: Sequence[float]
) -> tuple[list[Row], list[float]]:
    """Reorder the layers, from top to bottom, for few crossings; return them, and horizontal places
    of the items side by side. ``sizes`` are the items' widths."""
    ordered, best, fewest, worse = [row.copy() for row in rows], [*rows], crossings(rows, above), 0
    x = [0.0] * len(sizes)
    for sweep, _ in enumerate(_sweeps(ordered, above, below, x, sizes)):
        if sweep < _FIRST_COUNTED:
            continue
        found = crossings(ordered, above)
        worse = 0 if found < fewest else worse + 1
        if found <= fewest:  # of those alike the one whose neighbours are nearer
            best, fewest = [row.copy() for row in ordered], found
        if not fewest or worse == _MOST_WORSE:
            break
    if fewest:
        _exchange(best, above, below)
    for row in best:
        _spread(row, x, sizes)
    return best, x


def _sweeps(
    rows: Sequence[Row],
    above: Neighbours,
    below: Neighbours,
    x: list[float],
    sizes: Sequence[float],
) -> Iterator[None]:
    """Sort all layers by barycentres, downwards and upwards in turn."""
    for row in rows:
        _spread(row, x, sizes)
    for sweep in range(_MOST_SWEEPS):
        downwards = sweep % 2 == 0
        neighbours = above if downwards else below
        for row in rows if downwards else reversed(rows):
            for item in row:
                x[item] = mean(x, item, neighbours[item])
            row.sort(key=x.__getitem__)
            _spread(row, x, sizes)
        yield


def mean(x: Sequence[float], item: int, neighbours: Sequence[int]) -> float:
    """Compute the mean place of an item's neighbours; its own if it has none."""
    return sum(x[n] for n in neighbours) / len(neighbours) if neighbours else x[item]


def _spread(row: Sequence[int], x: list[float], sizes: Sequence[float]) -> None:
    """Place the items of a layer side by side, centred at the mean of their places."""
    centre = sum(x[item] for item in row) / max(1, len(row))
    place = centre - sum(sizes[item] for item in row) / 2
    for item in row:
        x[item] = place + sizes[item] / 2
        place += sizes[item]


def crossings(rows: Sequence[Row], above: Neighbours) -> int:
    """Count the crossings of edges between neighbouring layers."""
    total, places = 0, dict[int, int]()
    for row in rows:
        total += _inversions([p for item in row for p in sorted(places[n] for n in above[item])])
        places = {item: place for place, item in enumerate(row)}
    return total


def _inversions(numbers: Sequence[int]) -> int:
    """Count the inversions of a sequence by a Fenwick tree (Fenwick, 1994)."""
    tree = [0] * (max(numbers, default=0) + 2)
    total = 0
    for before, number in enumerate(numbers):
        total += before
        at = number + 1
        while at:  # less those up to it
            total -= tree[at]
            at &= at - 1
        at = number + 1
        while at < len(tree):
            tree[at] += 1
            at += at & -at
    return total


def _exchange(rows: Sequence[Row], above: Neighbours, below: Neighbours) -> None:
    """Exchange adjacent items as long as that removes crossings, for at most ``_MOST_PASSES``
    passes."""
    places = {item: place for row in rows for place, item in enumerate(row)}
    for _ in range(_MOST_PASSES):
        changed = [_exchanged(row, (above, below), places) for row in rows]
        if not any(changed):
            return


def _exchanged(row: Row, sides: tuple[Neighbours, Neighbours], places: dict[int, int]) -> bool:
    """Pass over one layer from left to right, exchanging adjacent items; return whether any
    were."""
    ends = {item: [sorted(places[n] for n in side[item]) for side in sides] for item in row}
    changed = False
    for at in range(len(row) - 1):
        left, right = row[at], row[at + 1]
        pairs = [*zip(ends[left], ends[right])]
        if sum(_larger(b, a) - _larger(a, b) for a, b in pairs) < 0:
            row[at], row[at + 1] = right, left
            places[left], places[right] = at + 1, at
            changed = True
    return changed


def _larger(one: Sequence[int], other: Sequence[int]) -> int:
    """Count the pairs of ascending numbers (one's, other's) in which the first is larger: the
    crossings if the item of the first stands on the left."""
    total = smaller = 0
    for number in one:
        while smaller < len(other) and other[smaller] < number:
            smaller += 1
        total += smaller
    return total
