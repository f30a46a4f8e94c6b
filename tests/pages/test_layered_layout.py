"""Graphs in layers: operands above users, nothing on top of anything else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pages.layer_order import crossings, with_few_crossings
from pages.layered_layout import LONGEST, layout


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[float], list[list[int]]]:
    """Draw widths of nodes, and operands that stand before their users."""
    count = draw(st.integers(0, 25))
    widths = [float(draw(st.integers(20, 200))) for _ in range(count)]
    earlier = [
        st.lists(st.integers(0, n - 1), max_size=3) if n else st.just([]) for n in range(count)
    ]
    return widths, [draw(each) for each in earlier]


@given(graphs())
def test_nothing_overlaps_and_operands_are_above(
    graph: tuple[list[float], list[list[int]]],
) -> None:
    widths, operands = graph
    found = layout(widths, operands)
    assert all(found.layer[o] < found.layer[n] for n, each in enumerate(operands) for o in each)
    rows: dict[int, list[tuple[float, float]]] = {}
    for n, width in enumerate(widths):
        rows.setdefault(found.layer[n], []).append((found.x[n] - width / 2, found.x[n] + width / 2))
    for row in map(sorted, rows.values()):
        assert all(right < left for (_, right), (left, _) in zip(row, row[1:]))
        assert row[0][0] >= -0.1 and row[-1][1] <= found.width + 0.1


@given(graphs())
def test_each_operand_is_one_edge_that_passes_every_layer_between(
    graph: tuple[list[float], list[list[int]]],
) -> None:
    widths, operands = graph
    found = layout(widths, operands)
    ends = [(edge.source, edge.target) for edge in found.edges]
    assert sorted(ends) == sorted({(o, n) for n, each in enumerate(operands) for o in each})
    for edge in found.edges:
        span = found.layer[edge.target] - found.layer[edge.source]
        assert edge.long == (span > LONGEST)
        assert len(edge.bends) == (0 if edge.long else span - 1)
    assert layout(widths, operands) == found


def test_a_chain_is_straight_and_what_is_given_stands_by_its_user() -> None:
    chain = layout([100.0] * 6, [[], [0], [1], [2], [], [3, 4]])
    assert chain.layer == (0, 1, 2, 3, 3, 4)
    assert max(chain.x[:3]) - min(chain.x[:3]) < 20
    assert layout([], []).edges == ()


@st.composite
def layers(draw: st.DrawFn) -> tuple[list[list[int]], list[list[int]], list[list[int]]]:
    """Draw the items of layers, and the neighbours of each above and below."""
    counts = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    rows, above = list[list[int]](), list[list[int]]()
    for count in counts:
        before = rows[-1] if rows else []
        rows.append([*range(len(above), len(above) + count)])
        chosen = st.lists(st.sampled_from(before), max_size=3, unique=True)
        above += [draw(chosen) if before else [] for _ in range(count)]
    below: list[list[int]] = [
        [n for n, own in enumerate(above) if m in own] for m in range(len(above))
    ]
    return rows, above, below


@given(layers())
def test_an_order_has_the_same_items_and_no_more_crossings(
    drawn: tuple[list[list[int]], list[list[int]], list[list[int]]],
) -> None:
    rows, above, below = drawn
    found, x = with_few_crossings(rows, above, below, [1.0] * len(above))
    assert [*map(sorted, found)] == rows
    assert all(x[a] + 0.99 < x[b] for row in found for a, b in zip(row, row[1:]))
    edges = [[(n, m) for m in row for n in above[m]] for row in found]
    places = {item: place for row in found for place, item in enumerate(row)}
    counted = sum(
        (places[n] - places[o]) * (places[m] - places[p]) < 0
        for row in edges
        for k, (n, m) in enumerate(row)
        for o, p in row[:k]
    )
    assert counted == crossings(found, above) <= crossings(rows, above)
    for row in found:  # and no neighbours are left to exchange
        for n in range(len(row) - 1):
            row[n : n + 2] = row[n + 1], row[n]
            assert crossings(found, above) >= counted
            row[n : n + 2] = row[n + 1], row[n]


def test_crossings_that_need_not_be_are_gone() -> None:
    above = [[], [], [], [], [3], [2], [1], [0]]
    below = [[7], [6], [5], [4], [], [], [], []]
    found, _ = with_few_crossings([[0, 1, 2, 3], [4, 5, 6, 7]], above, below, [1.0] * 8)
    assert crossings(found, above) == 0
