"""Run the operations that a function calls one by one, for the value that each of them gives.

PyTorch compiles no HLO, so it cannot be asked for values inside of a program. But eager is its
kernels one after the other, and so is this run: what it shows are values that legal steps lead to,
and a result that follows from them is legal, whoever computed it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Interpreter, Node

from hlo.values import Array
from hlo_oracle.frontends.torch.tensors import array_of, has_type, tensor_of
from hlo_oracle.frontends.torch.unwritten import makes_unwritten

_MOST_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class ValuesBetween:
    """A program that returns a function's results and then the values of its operations, its
    arguments, and both as PyTorch gives them; None for a value that it does not compute, as a
    gradient that nobody reads."""

    text: str
    arguments: tuple[Array, ...]
    results: tuple[Array, ...]
    values: tuple[Array | None, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """The results of a graph, and the values of its operations."""

    results: tuple[Array, ...]
    values: tuple[Array | None, ...]


def showing(module: GraphModule) -> GraphModule:
    """Return a graph that returns the values of its operations as well, after its results."""
    found = copy.deepcopy(module)
    (output,) = (node for node in found.graph.nodes if node.op == "output")
    shown = [node for node in found.graph.nodes if _is_computed_tensor(node)]
    results = [*output.args[0], *shown]
    found.graph.erase_node(output)
    found.graph.output(results)
    found.recompile()
    return found


def _is_computed_tensor(node: Node) -> bool:
    """Test for an operation whose value is one tensor that it computes: a view only moves, and new
    memory is written later, perhaps in part."""
    value = node.meta.get("val")
    if node.op != "call_function" or not isinstance(value, torch.Tensor) or makes_unwritten(node):
        return False
    if not has_type(value.dtype) or not value.numel() or value.device.type != "cpu":
        return False
    return not (isinstance(node.target, torch._ops.OpOverload) and node.target.is_view)


def run(module: GraphModule, arguments: Sequence[Array], count: int) -> Run | None:
    """Run a graph of :func:`showing`, which has ``count`` results, on its arguments; None if its
    values take too much memory."""
    (output,) = (node for node in module.graph.nodes if node.op == "output")
    values: Sequence[Any] = [node.meta.get("val") for node in output.args[0] if node is not None]
    if sum(x.nbytes for x in values if isinstance(x, torch.Tensor)) > _MOST_BYTES:
        return None
    # What a value is in the end, after all writes, is what the program without writes returns.
    with torch.no_grad():
        found = Interpreter(module).run(*(tensor_of(array.copy()) for array in arguments))
    results = tuple(array_of(x).copy() for x in found[:count])
    shown = (array_of(x).copy() if isinstance(x, torch.Tensor) else None for x in found[count:])
    return Run(results, tuple(shown))
