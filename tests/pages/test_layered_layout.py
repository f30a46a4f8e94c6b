"""Graphs in layers: operands above users, nothing on top of anything else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

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
