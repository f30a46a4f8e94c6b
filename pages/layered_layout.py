"""Place the nodes of a directed acyclic graph in layers: operands above, users below.

The method is that of Sugiyama, Tagawa and Toda (1981): layers by longest path, long edges cut by
points in the layers between, few crossings by the order of each layer (:mod:`pages.layer_order`).
Horizontal places are those nearest to the mean of the neighbours that keep order and distance:
isotonic regression by pooling adjacent violators (Ayer et al., 1955), which is exact and linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pages.layer_order import mean, with_few_crossings

# An edge over more layers is drawn as two stubs: points for it in each layer would be most of the
# picture, and nobody can follow it.
LONGEST = 8
ROW = 84.0  # between the tops of layers, in pixels
HEIGHT = 40.0  # of a node
_GAP = 22.0  # between nodes of a layer
_POINT_GAP = 10.0  # between edges that pass a layer
_STEPS = 8  # that move what is sorted
_STRAIGHT = 4.0  # an edge that passes a layer weighs so much more than a node


@dataclass(frozen=True, slots=True)
class Edge:
    """A drawn edge: its ends, and the horizontal places at which it passes the layers between them.
    ``long``: it spans more than ``LONGEST`` layers, and has no such places."""

    source: int
    target: int
    bends: tuple[float, ...] = ()
    long: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """The centre of each node in pixels, its layer (0 is the top), the edges, and the size."""

    x: tuple[float, ...]
    layer: tuple[int, ...]
    edges: tuple[Edge, ...]
    width: float
    height: float


def layout(widths: Sequence[float], operands: Sequence[Sequence[int]]) -> Layout:
    """Lay out nodes of given widths; each node's operands have smaller numbers than itself."""
    layers = _layers(operands)
    pairs = [
        (source, target)
        for target, sources in enumerate(operands)
        for source in dict.fromkeys(sources)
    ]
    sizes = [width + _GAP for width in widths]
    places = list(layers)
    above: list[list[int]] = [[] for _ in sizes]
    chains: dict[int, range] = {}
    for number, (source, target) in enumerate(pairs):
        span = layers[target] - layers[source]
        # Pages draw only stubs of such an edge: it needs no points in the layers between.
        if span > LONGEST:
            continue
        chains[number] = range(len(sizes), len(sizes) + span - 1)
        last = source
        for point in chains[number]:
            sizes.append(_POINT_GAP)
            places.append(places[last] + 1)
            above.append([last])
            last = point
        above[target].append(last)
    x = _placed(sizes, places, above, len(widths))
    halves = [*(width / 2 for width in widths), *[0.0] * (len(x) - len(widths))]  # edges have none
    left = min((place - half for place, half in zip(x, halves, strict=True)), default=0.0)
    right = max((place + half for place, half in zip(x, halves, strict=True)), default=0.0)
    edges = tuple(
        Edge(*pair, tuple(round(x[point] - left, 1) for point in chains[number]))
        if number in chains
        else Edge(*pair, long=True)
        for number, pair in enumerate(pairs)
    )
    own = tuple(round(x[n] - left, 1) for n in range(len(widths)))
    height = ROW * max(layers, default=0) + HEIGHT
    return Layout(own, tuple(layers), edges, right - left, height)


def _layers(operands: Sequence[Sequence[int]]) -> list[int]:
    """Assign a layer to each node: below its operands. A chain that depends on parameters and
    constants alone is moved down to just above its first user."""
    layers = [0] * len(operands)
    sinking = [False] * len(operands)
    for node, sources in enumerate(operands):
        layers[node] = max((layers[s] + 1 for s in sources), default=0)
        sinking[node] = len(set(sources)) <= 1 and all(sinking[s] for s in sources)
    first_user: dict[int, int] = {}
    for node in reversed(range(len(operands))):
        if sinking[node] and node in first_user:
            layers[node] = first_user[node] - 1
        for source in operands[node]:
            first_user[source] = min(layers[node], first_user.get(source, layers[node]))
    return layers


def _placed(
    sizes: Sequence[float], layers: Sequence[int], above: Sequence[Sequence[int]], nodes: int
) -> list[float]:
    """Compute the horizontal centre of each node and point; items from ``nodes`` on are points of
    long edges."""
    below: list[list[int]] = [[] for _ in sizes]
    rows: list[list[int]] = [[] for _ in range(max(layers, default=-1) + 1)]
    for item, sources in enumerate(above):
        rows[layers[item]].append(item)
        for source in sources:
            below[source].append(item)
    rows, x = with_few_crossings(rows, above, below, sizes)
    weights = [1.0] * nodes + [_STRAIGHT] * (len(sizes) - nodes)
    for sweep in range(_STEPS):
        for row in rows if sweep % 2 else reversed(rows):
            wanted = [mean(x, item, (*above[item], *below[item])) for item in row]
            for item, place in zip(row, _separated(row, wanted, sizes, weights)):
                x[item] = place
    return x


def _separated(
    row: Sequence[int], wanted: Sequence[float], sizes: Sequence[float], weights: Sequence[float]
) -> list[float]:
    """Compute the places nearest to ``wanted``, in weighted least squares, that keep order and
    distance."""
    # Less the sizes before it, each place is at least the one before: a monotone sequence.
    offsets, end = [], 0.0
    for item in row:
        offsets.append(end + sizes[item] / 2)
        end += sizes[item]
    blocks: list[tuple[float, float, int]] = []  # weight, mean, items
    for item, place, offset in zip(row, wanted, offsets):
        weight, mean, count = weights[item], place - offset, 1
        while blocks and blocks[-1][1] > mean:
            other, value, items = blocks.pop()
            mean = (weight * mean + other * value) / (weight + other)
            weight, count = weight + other, count + items
        blocks.append((weight, mean, count))
    means = [mean for _, mean, count in blocks for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets)]
