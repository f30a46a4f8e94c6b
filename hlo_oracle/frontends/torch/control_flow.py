"""Implement the operations of torch that take functions: branches, loops, scans and maps.

Their functions are graphs of their own (:func:`subgraph_of`), here functions from arrays to lists
of arrays. Numbers among the operands (sizes, say) are those of the program, and not carried.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import torch
from torch.fx import GraphModule, Node

from hlo_oracle.frontends.torch.aten.promotion import is_array

Function = Callable[..., list[Any]]


def subgraph_of(node: Node) -> GraphModule | None:
    """Return the graph that a node names, which is an operand of another node; None if it names
    none."""
    if node.op != "get_attr":
        return None
    value = operator.attrgetter(str(node.target))(node.graph.owning_module)
    return value if isinstance(value, GraphModule) else None


def takes_functions(node: Node) -> bool:
    """Test for an operation that takes functions, whether it converts or not."""
    return isinstance(node.target, torch._ops.HigherOrderOperator)


def subgraphs(node: Node) -> list[GraphModule]:
    """List the graphs among the operands of a node."""
    return [g for x in node.all_input_nodes if (g := subgraph_of(x)) is not None]


def operation_of(node: Node) -> Callable[..., Any] | None:
    """Find the implementation of an operation that takes functions; None if there is none."""
    return _OPS.get(str(getattr(node.target, "__name__", "")))


def _cond(chosen: Any, then: Function, otherwise: Function, operands: Sequence[Any] = ()) -> Any:
    """Compute ``then(*operands) if chosen else otherwise(*operands)``."""
    if not is_array(chosen):
        return (then if chosen else otherwise)(*operands)
    return jax.lax.cond(chosen.reshape(()), lambda: then(*operands), lambda: otherwise(*operands))


def _while_loop(
    more: Function, step: Function, carried: Sequence[Any], others: Sequence[Any] = ()
) -> Any:
    """Compute ``while more(*carried, *others): carried = step(*carried, *others)``."""

    def is_on(state: Any) -> Any:
        found = more(*state, *others)
        return (found[0] if isinstance(found, list) else found).reshape(())

    def stepped(state: Any) -> Any:
        return _like(step(*state, *others), state)

    return jax.lax.while_loop(is_on, stepped, list(map(jnp.asarray, carried)))


def _scan(
    combine: Function, initial: Sequence[Any], rows: Sequence[Any], others: Sequence[Any] = ()
) -> Any:
    """Fold rows, which are slices of the first dimension, into what is carried:
    ``*carried, *result = combine(*carried, *row, *others)``; return the last carried, and the
    results stacked."""
    count = len(initial)

    def stepped(carried: Any, row: Any) -> Any:
        found = combine(*carried, *row, *others)
        return _like(found[:count], carried), found[count:]

    carried, stacked = jax.lax.scan(stepped, list(map(jnp.asarray, initial)), list(rows))
    return [*carried, *stacked]


def _map(function: Function, rows: Sequence[Any], others: Sequence[Any] = ()) -> Any:
    """Apply a function to each slice of the first dimension; return the results stacked."""
    return _scan(function, (), rows, others)


def _call(function: Function, _identifier: Any, *operands: Any) -> Any:
    """Call a function that torch compiles once for several calls (``nested_compile_region``)."""
    return function(*operands)


def _like(values: Sequence[Any], state: Sequence[Any]) -> list[Any]:
    """Convert to the types of what is carried, which a loop does not change."""
    return [jnp.asarray(x, s.dtype) for x, s in zip(values, state, strict=True)]


_OPS: Mapping[str, Callable[..., Any]] = {
    "cond": _cond,
    "while_loop": _while_loop,
    "scan": _scan,
    "map_impl": _map,
    "invoke_subgraph": _call,
}
