"""Rewrite graphs before they are divided, to get few stages and no needless copies."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Graph, Node

from hlo_oracle.frontends.torch import graphs

FREE = "costs PyTorch nothing"  # a view, a size, an empty tensor: no fallback

# Of the first argument they read the shape alone.
_SHAPES_ONLY = (
    "rand_like", "randn_like", "randint_like", "bernoulli.p", "empty_like", "normal_functional",
)  # fmt: skip
_CLONED = "is_view_for_torch"  # in the meta of a node


def reason_against(node: Node) -> str | None:
    """Return why PyTorch runs a node: ``FREE`` if it costs nothing there, else a fallback's reason;
    None if the node may be compiled."""
    if _CLONED in node.meta or graphs.is_number_node(node) or _packet(node) == "empty_strided":
        return FREE
    return graphs.reason_against(node)


def is_view(node: Node) -> bool:
    """Test for an operation whose result lies in the memory of its first operand, or for an element
    of such a list: PyTorch does it by changing strides alone."""
    target = node.target
    if target is operator.getitem:
        return is_view(node.args[0])
    is_operation = isinstance(target, torch._ops.OpOverload)
    return is_operation and (target.is_view or target is torch.ops.aten._unsafe_view.default)


def prepare(graph: Graph) -> None:
    """Rewrite a graph in place: cut needless dependencies, clone views for PyTorch, and drop dead
    code."""
    for node in graphs.computing(graph):
        if node.target is torch.ops.aten.bernoulli.p:
            node.meta["val"] = torch.empty_like(node.args[0].meta["val"])
        _forget_values(graph, node)
    for node in list(graph.nodes):
        is_call = node.op == "call_function"
        if node.op == "output" or (is_call and graphs.reason_against(node) is not None):
            own = _with_views_cloned(graph, node, node.args, {})
            for n, argument in enumerate(own):
                node.update_arg(n, argument)
    graph.eliminate_dead_code(lambda node: graphs.is_random(node) or node.is_impure())
    graph.lint()


def drawn_in_memory(x: Any, p: float, generator: Any = None) -> Any:
    """Draw truth values of probability ``p`` into memory that lies as a tensor's.

    This is ``x.bernoulli_(p)``, as dropout draws, of which functionalization makes ``bernoulli.p``.
    That one draws in row-major order whatever the order in memory: other values for one seed.
    """
    return torch.empty_like(x).bernoulli_(p, generator=generator)


def _packet(node: Node) -> str:
    """Return an ATen operation's name without the overload; empty for other operations."""
    name = graphs.op_name(node)
    return name.split(".")[1] if name.startswith("aten.") else ""


def _forget_values(graph: Graph, node: Node) -> None:
    """Replace an operand of which only the shape is read by an empty tensor, which depends on
    nothing."""
    name = graphs.op_name(node).removeprefix("aten.")
    if not any(name == known or name.startswith(f"{known}.") for known in _SHAPES_ONLY):
        return
    source = node.args[0]
    fake = source.meta.get("val") if isinstance(source, Node) else None
    if not isinstance(fake, torch.Tensor):
        return
    if source.op == "placeholder" or not _is_static(fake):
        return
    with graph.inserting_before(node):
        empty = graph.call_function(
            torch.ops.aten.empty_strided.default,
            (list(fake.shape), list(fake.stride())),
            {"dtype": fake.dtype, "device": fake.device},
        )
    empty.meta["val"] = fake
    node.update_arg(0, empty)


def _is_static(fake: Any) -> bool:
    return all(isinstance(x, int) for x in (*fake.shape, *fake.stride()))


def _with_views_cloned(graph: Graph, user: Node, arguments: Any, clones: dict[Node, Node]) -> Any:
    """Clone the views that a node run by PyTorch reads, down to what they are views of: they are
    free there, while the output of a stage of C would be a copy. Results of a graph that share
    memory must do so, and lie where the view lies: what is made of one later may count on it."""

    def own(node: Node) -> Node:
        if node.op != "call_function" or not is_view(node):
            return node
        if node not in clones:
            base = own(node.args[0])
            with graph.inserting_before(user):
                clone = graph.call_function(node.target, (base, *node.args[1:]), dict(node.kwargs))
            clone.meta.update({**node.meta, _CLONED: True})
            clones[node] = clone
        return clones[node]

    return torch.fx.map_arg(arguments, own)
