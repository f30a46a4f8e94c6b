"""Take operations by the formulas that PyTorch documents for them.

``torch.remainder(a, b)`` is documented as ``a - a.div(b, rounding_mode="floor") * b``. What eager's
kernel gives is exact (``fmod``); a compiler may take the formula, whose quotient and product round.
"""

from __future__ import annotations

import copy

import torch
from torch.fx import GraphModule, Node

from hlo_oracle.frontends.torch.graphs import op_name

_REMAINDERS = ("aten.remainder.Tensor", "aten.remainder.Scalar")


def with_formulas(module: GraphModule) -> GraphModule | None:
    """Return a graph that computes remainders of floats by the formula; None if there are none."""
    if not any(map(_is_remainder, module.graph.nodes)):
        return None
    made = copy.deepcopy(module)
    graph = made.graph
    aten = torch.ops.aten
    for node in [*filter(_is_remainder, graph.nodes)]:
        a, b = node.args
        with graph.inserting_before(node):
            steps = graph.call_function(aten.div.Tensor_mode, (a, b), {"rounding_mode": "floor"})
            product = graph.call_function(aten.mul.Tensor, (steps, b))
            left = graph.call_function(aten.sub.Tensor, (a, product))
        for one in (steps, product, left):
            one.meta.update(node.meta)
        node.replace_all_uses_with(left)
        graph.erase_node(node)
    made.recompile()
    return made


def _is_remainder(node: Node) -> bool:
    """Test for a remainder of a tensor of floats by a tensor or a number."""
    if op_name(node) not in _REMAINDERS:
        return False
    return bool(node.meta["val"].dtype.is_floating_point)
