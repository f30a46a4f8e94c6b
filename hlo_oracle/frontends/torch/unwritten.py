"""Refuse graphs that compute with memory that no operation of theirs wrote.

Some functions of PyTorch fill a tensor by its address (``at::tensor`` of a list, in C++), which a
trace does not see: to it the tensor is uninitialised. What such a graph computes is not what the
function does.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch.fx import Graph, Node

from hlo.errors import Unsupported
from hlo_oracle.frontends.torch.graphs import at_line, nodes_in, op_name, values_of

_NEW = frozenset(
    ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
)
#: They read the shape of their first operand, or write all or some of its elements.
_NOT_READING = frozenset(
    (
        "copy", "fill", "full_like", "new_full", "new_ones", "new_zeros", "ones_like", "rand_like",
        "randn_like", "sym_numel", "sym_size", "sym_stride", "zero", "zeros_like",
        "as_strided_scatter", "diagonal_scatter", "index_copy", "index_fill", "index_put",
        "masked_fill", "masked_scatter", "scatter", "select_scatter", "slice_scatter",
    )
)  # fmt: skip
_VIEWS = frozenset(
    (
        "alias", "as_strided", "detach", "diagonal", "expand", "permute", "reshape", "select",
        "slice", "squeeze", "t", "transpose", "unsqueeze", "view", "_unsafe_view",
    )
)  # fmt: skip


def makes_unwritten(node: Node) -> bool:
    """Test for an operation whose result is uninitialised memory."""
    return _name(node) in _NEW


def _name(node: Node) -> str:
    return op_name(node).removeprefix("aten.").partition(".")[0].removesuffix("_copy")


def require_written(graph: Graph) -> None:
    """Raise Unsupported for a node that reads uninitialised memory, or returns it."""
    unwritten: set[Node] = set()
    for node in graph.nodes:
        name = _name(node)
        if makes_unwritten(node):
            if any(_elements(value) for value in values_of(node)):
                unwritten.add(node)
        elif name in _VIEWS and unwritten.intersection(node.args[:1]):
            unwritten.add(node)
        elif unwritten.intersection(_read(node, name)):
            raise Unsupported(
                f"{op_name(node)}{at_line(node)} reads memory that nothing has written, or that was"
                " filled outside of PyTorch's operations: no program to judge by"
            )


def _read(node: Node, name: str) -> Iterator[Node]:
    """Yield the nodes whose elements a node reads."""
    places = list(node.args)
    if name in _NOT_READING:
        places = places[1:]
    yield from nodes_in((places, dict(node.kwargs)))


def _elements(value: object) -> int:
    count = getattr(value, "numel", None)
    return int(count()) if callable(count) else 0
