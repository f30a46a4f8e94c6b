"""Evaluate FX graphs on JAX arrays: each node is an operation of ATen or of Python.

Numbers that torch keeps symbolic (sizes of dynamic dimensions) are Python integers here, as each
shape is compiled by itself.
"""

from __future__ import annotations

import builtins
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import torch
from torch.fx import Graph, GraphModule, Node

from hlo.errors import Unsupported
from hlo_oracle.frontends.torch import control_flow, strided
from hlo_oracle.frontends.torch.aten import table
from hlo_oracle.frontends.torch.aten.promotion import is_array
from hlo_oracle.frontends.torch.tensors import array_of, has_type, numpy_type

_LAPACK = {
    "syevd": "eigenvalues of symmetric matrices", "heevd": "eigenvalues of Hermitian matrices",
    "geev": "eigenvalues", "gesdd": "singular values", "gesvd": "singular values",
}  # fmt: skip
_IGNORED = ("device", "layout", "pin_memory", "memory_format", "non_blocking")
_MODULES = (operator, math, builtins, torch)  # of functions on numbers, symbolic ones in torch
_RANDOM = getattr(torch.Tag, "nondeterministic_seeded", None)

_SIZES: Mapping[str, Callable[..., Any]] = {
    "sym_size": lambda x, dim=None: tuple(x.shape) if dim is None else x.shape[dim],
    "sym_numel": lambda x: x.size,
}


def is_number_node(node: Node) -> bool:
    """Test for a node whose value is a number: Python's arithmetic, or a size."""
    return not any(_is_fake(value) for value in values_of(node))


def _is_fake(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def values_of(node: Node) -> list[Any]:
    """List a node's fake tensors and numbers, the elements of a tuple one by one."""
    value = node.meta.get("val")
    return list(value) if isinstance(value, list | tuple) else [value]


def op_name(node: Node) -> str:
    """Return the name of a node's operation, as torch prints it (``aten.add.Tensor``)."""
    target = node.target
    return str(target) if isinstance(target, torch._ops.OpOverload) else _python_name(target)


def _python_name(target: Any) -> str:
    return str(getattr(target, "__name__", target))


def is_random(node: Node) -> bool:
    """Test for an operation that draws from torch's random generator; attention does if it has
    dropout, an operation that takes functions if they do."""
    if control_flow.takes_functions(node):
        return any(is_random(x) for g in control_flow.subgraphs(node) for x in computing(g.graph))
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or _RANDOM not in target.tags:
        return False
    names = [argument.name for argument in target._schema.arguments]
    if "dropout_p" not in names:
        return True
    place = names.index("dropout_p")
    default = target._schema.arguments[place].default_value
    given = node.args[place] if place < len(node.args) else node.kwargs.get("dropout_p", default)
    return bool(given != 0)


def has_effect(node: Node) -> bool:
    """Test for an operation that writes into its arguments, or has another side effect."""
    target = node.target
    return isinstance(target, torch._ops.OpOverload) and (
        target._schema.is_mutable or (not node.users and not target._schema.returns)
    )


def reason_against(node: Node) -> str | None:
    """Return why a node's operation cannot be converted; None if it may be, or is of numbers."""
    if is_number_node(node):
        return None
    if node.op != "call_function":
        return f"{node.op} {node.target}"
    if is_random(node):
        return "reads torch's generator of random numbers, so that torch.manual_seed holds"
    if control_flow.takes_functions(node):
        return _reason_against_functions(node)
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        known = any(_python_name(target) in vars(module) for module in _MODULES)
        return None if known else "no operation of ATen"
    if has_effect(node):
        return "writes into its arguments, or has another effect"
    name, overload = _names(target)
    if name not in _SIZES and table.operation_of(name, overload) is None:
        return "no conversion to HLO"
    if name == "as_strided" and _place_of_view(node) is None:
        return "strides in memory with gaps, or of symbolic sizes"
    given = [x for operand in nodes_in((node.args, node.kwargs)) for x in values_of(operand)]
    return next(filter(None, map(_reason_against_tensor, [*values_of(node), *given])), None)


def _reason_against_functions(node: Node) -> str | None:
    """Return why an operation that takes functions cannot be converted; None if it may be."""
    if control_flow.operation_of(node) is None:
        # with_effects calls such an operation, the check of a factorization for example.
        effects = [x for x in node.args if isinstance(x, torch._ops.OpOverload)]
        return f"{effects[0]} has an effect" if effects else "no conversion to HLO"
    for graph in control_flow.subgraphs(node):
        for inner in computing(graph.graph):
            if (why := reason_against(inner)) is not None:
                return f"{op_name(inner)} inside: {why}"
    return next(filter(None, map(_reason_against_tensor, values_of(node))), None)


def _reason_against_tensor(value: object) -> str | None:
    """Return why a value cannot be an array; None if it can, or is no tensor."""
    if not isinstance(value, torch.Tensor):
        return None
    if value.device.type != "cpu":
        return f"on {value.device}"
    if value.layout is not torch.strided or value.is_nested or value.is_quantized:
        return f"a tensor of layout {value.layout}"
    if not has_type(value.dtype):
        return f"{value.dtype} has no type in HLO"
    return None


def _names(target: Any) -> tuple[str, str]:
    namespace, _, name = target._schema.name.partition("::")
    known = namespace in ("aten", "prims")
    return (name if known else f"{namespace}::{name}"), target._overloadname


def _place_of_view(node: Node) -> tuple[tuple[int, ...], int] | None:
    """Return where a view by strides lies in the memory of its operand (:mod:`strided`)."""
    source, *rest = node.args
    fake = source.meta.get("val")
    return None if fake is None else strided.place_of_view(fake, *rest, **node.kwargs)


def call(node: Node, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Compute a node's value from those of its arguments."""
    target: Any = node.target
    types = [numpy_type(v.dtype) if _is_fake(v) else None for v in values_of(node)]
    if control_flow.takes_functions(node):
        operation = control_flow.operation_of(node)
    elif not isinstance(target, torch._ops.OpOverload):
        return _python(target, arguments, keywords)
    else:
        name, overload = _names(target)
        if name in _SIZES:
            return _SIZES[name](*arguments, **keywords)
        found = table.operation_of(name, overload)
        operation = None if found is None else partial(found, types[0])
        if name == "as_strided" and (place := _place_of_view(node)) is not None:
            arguments, keywords = (*arguments[:3], *place), {}
    if operation is None:
        raise Unsupported(f"{op_name(node)}: no conversion to HLO")
    kept = {key: value for key, value in keywords.items() if key not in _IGNORED}
    with jax.named_scope(node.name):
        return _in_types(operation(*arguments, **kept), types)


def _python(target: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Call a Python function on numbers; torch's functions of symbolic numbers (``sym_max``) accept
    plain ones."""
    if any(is_array(x) for x in arguments) and target is not operator.getitem:
        raise Unsupported(f"{_python_name(target)} of a tensor")
    return target(*arguments, **keywords)


def _in_types(result: Any, types: Sequence[Any]) -> Any:
    """Convert results to the types of torch's fake results."""
    if isinstance(result, list | tuple):
        pairs = zip(result, types, strict=True)
        return [x if x is None or t is None else x.astype(t) for x, t in pairs]
    if types[0] is None or not is_array(result):
        return result
    return result if result.dtype == types[0] else result.astype(types[0])


def mapped(arguments: Any, values: Mapping[Node, Any]) -> Any:
    """Substitute values for nodes in a node's arguments, functions for their graphs, and NumPy's
    types for torch's."""
    if isinstance(arguments, Node):
        graph = None if arguments in values else control_flow.subgraph_of(arguments)
        return values[arguments] if graph is None else partial(_evaluated, graph)
    if isinstance(arguments, list | tuple):
        return [mapped(x, values) for x in arguments]
    if isinstance(arguments, dict):
        return {key: mapped(x, values) for key, x in arguments.items()}
    if isinstance(arguments, torch.dtype):
        return numpy_type(arguments)
    return arguments


def computed(nodes: Sequence[Node], values: dict[Node, Any]) -> None:
    """Evaluate nodes in order, adding each value to ``values``.

    Raises Unsupported with the node's operation and the line of Python that it comes from.
    """
    for node in nodes:
        try:
            arguments, keywords = mapped(node.args, values), mapped(node.kwargs, values)
            values[node] = call(node, arguments, keywords)
        except Exception as error:  # whatever JAX says of arguments that it does not take
            raise NodeError(node, error) from error


def _evaluated(module: GraphModule, *arguments: Any) -> Any:
    """Evaluate a graph on arrays and numbers, as a function of its placeholders."""
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    values: dict[Node, Any] = dict(zip(inputs, arguments, strict=True))
    values.update(
        (node, jax.numpy.asarray(array_of(getattr(module, str(node.target)))))
        for node in constants(module.graph)
    )
    computed(computing(module.graph), values)
    (output,) = (node for node in module.graph.nodes if node.op == "output")
    return mapped(output.args[0], values)


def computing(graph: Graph) -> list[Node]:
    """List the nodes that compute, in order: no inputs, constants or outputs."""
    return [n for n in graph.nodes if n.op not in ("placeholder", "get_attr", "output")]


def constants(graph: Graph) -> list[Node]:
    """List the nodes that are constant tensors."""
    found = (node for node in graph.nodes if node.op == "get_attr")
    return [node for node in found if control_flow.subgraph_of(node) is None]


class NodeError(Unsupported):
    """An error of one node, which cannot be converted, with the reason."""

    def __init__(self, node: Node, error: Exception) -> None:
        self.node = node
        first = next(iter(str(error).splitlines()), "")
        self.reason = _short(first) if isinstance(error, Unsupported) else _named(error, first)
        super().__init__(f"{op_name(node)}{at_line(node)}: {self.reason}")


def _short(reason: str) -> str:
    """Name what a routine of LAPACK computes where C has none, in place of the routine and of those
    that there are."""
    routine = re.search(r"no C for the custom call target 'lapack_[a-z]([a-z]+)_ffi'", reason)
    if routine is None:
        return reason
    return f"no C for {_LAPACK.get(routine[1], f'{routine[1]} of LAPACK')}"


def _named(error: Exception, first: str) -> str:
    if isinstance(error, NotImplementedError) and first:
        return f"no conversion of {first}"
    return f"{type(error).__name__}: {first}"[:300]


def at_line(node: Node) -> str:
    """Format the node's line in the user's Python, with a leading blank; empty if it is unknown."""
    place = line_of(node)
    return f" ({place})" if place else ""


def line_of(node: Node) -> str:
    """Return the innermost line of the user's Python that created a node, as ``file:line``."""
    found = ""
    for line in (node.meta.get("stack_trace") or "").splitlines():
        words = line.strip().split('"')
        if len(words) == 3 and words[0] == "File " and words[2].startswith(", line "):
            found = f"{words[1]}:{words[2].removeprefix(', line ').split(',')[0]}"
    return found


def nodes_in(arguments: Any) -> Iterator[Node]:
    """Yield the nodes among arguments."""
    if isinstance(arguments, Node):
        yield arguments
    elif isinstance(arguments, dict):
        for value in arguments.values():
            yield from nodes_in(value)
    elif isinstance(arguments, list | tuple):
        for value in arguments:
            yield from nodes_in(value)
    elif isinstance(arguments, slice):
        yield from nodes_in((arguments.start, arguments.stop, arguments.step))
