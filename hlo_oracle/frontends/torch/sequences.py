"""Take sequences of numbers (``arange``) as PyTorch's own kernels make them.

An element is start + n step, rounded once: so does a scalar loop, and inductor. Eager's kernel in
vectors rounds the first element of each vector, adds the multiples of the step to that, and rounds
again: by one unit off, with vectors of a length that depends on the processor. What it makes is
legal if it is within these two roundings.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch.fx import GraphModule, Node

from hlo_oracle.frontends.torch.graphs import op_name


def with_own(module: GraphModule) -> GraphModule | None:
    """Return a graph whose sequences of floats are constants that eager made; None if none of them
    differs from what is rounded once, or one is not legal."""
    found = {node.name: torch.arange(*_bounds(node), dtype=_dtype(node)) for node in _all(module)}
    exact = {node.name: _exact(node) for node in _all(module)}
    once = {name: torch.from_numpy(exact[name]).to(x.dtype) for name, x in found.items()}
    if all(torch.equal(x, once[name]) for name, x in found.items()):
        return None
    if not all(_is_legal(x, exact[name]) for name, x in found.items()):
        return None
    own = copy.deepcopy(module)
    for node in _all(own):
        name = f"own_{node.name}"
        own.register_buffer(name, found[node.name])
        with own.graph.inserting_before(node):
            constant = own.graph.get_attr(name)
        constant.meta.update(node.meta)
        node.replace_all_uses_with(constant)
        own.graph.erase_node(node)
    own.recompile()
    return own


def _all(module: GraphModule) -> list[Node]:
    """List the sequences of floats with a known beginning, end and step."""
    return [
        node
        for node in module.graph.nodes
        if op_name(node) == "aten.arange.start_step"
        and _dtype(node).is_floating_point
        and all(type(x) in (int, float) for x in _bounds(node))
    ]


def _bounds(node: Node) -> tuple[Any, Any, Any]:
    start, end, *step = node.args
    return start, end, step[0] if step else node.kwargs.get("step", 1)


def _dtype(node: Node) -> Any:
    return node.meta["val"].dtype


def _exact(node: Node) -> Any:
    start, _, step = _bounds(node)
    return start + np.arange(node.meta["val"].shape[0], dtype=np.float64) * step


def _is_legal(found: Any, exact: Any) -> bool:
    """Test for at most two roundings, of the first element of a vector and of the result."""
    most = np.maximum(np.abs(exact), np.abs(exact[:1]))
    error = np.abs(found.double().numpy() - exact)
    return bool((error <= most * torch.finfo(found.dtype).eps).all())
