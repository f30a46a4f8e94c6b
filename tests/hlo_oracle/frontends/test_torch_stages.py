"""Stages of a graph: each node after its inputs, random ones in order, no more stages than needed.

Nothing here needs PyTorch.
"""

from hypothesis import given
from hypothesis import strategies as st

from hlo_oracle.frontends.torch.stages import in_order, placed


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[list[int]], list[str]]:
    """Draw the inputs of each node, which come before it, and who runs it."""
    count = draw(st.integers(1, 12))
    inputs = [draw(st.lists(st.integers(0, n - 1), max_size=3)) if n else [] for n in range(count)]
    kinds = draw(st.lists(st.sampled_from("CER"), min_size=count, max_size=count))
    return inputs, kinds


def divided(inputs: list[list[int]], kinds: list[str]) -> list[tuple[bool, list[int]]]:
    nodes = range(len(inputs))
    places = placed(nodes, inputs.__getitem__, lambda n: kinds[n] == "C", lambda n: kinds[n] == "R")
    return in_order(places)


@given(graphs())
def test_every_node_runs_once_and_after_its_inputs(
    graph: tuple[list[list[int]], list[str]],
) -> None:
    inputs, kinds = graph
    stages = divided(inputs, kinds)
    order = [node for _, nodes in stages for node in nodes]
    assert sorted(order) == list(range(len(inputs)))
    for node in order:
        assert all(order.index(x) < order.index(node) for x in inputs[node])
    for is_compiled, nodes in stages:
        assert {kinds[n] == "C" for n in nodes} == {is_compiled}


@given(graphs())
def test_random_numbers_are_drawn_in_the_order_of_the_program(
    graph: tuple[list[list[int]], list[str]],
) -> None:
    inputs, kinds = graph
    drawn = [n for _, nodes in divided(inputs, kinds) for n in nodes if kinds[n] == "R"]
    assert drawn == sorted(drawn)


def test_one_node_in_the_middle_divides_in_two_and_one_that_waits_for_nothing_does_not() -> None:
    chain = [[], [0], [1], [2]]
    assert divided(chain, list("CCEC")) == [(True, [0, 1]), (False, [2]), (True, [3])]
    apart = [[], [0], [], [1, 2]]
    assert divided(apart, list("CCRC")) == [(False, [2]), (True, [0, 1, 3])]
