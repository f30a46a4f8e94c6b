"""Lower a PyTorch function and its arguments to one program, to judge the compiler that runs it.

The function is traced with its tensors: those of a module, its parameters and buffers first, then
those among the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree

from hlo.errors import Error, Unsupported
from hlo.values import Array
from hlo_oracle.frontends.torch import decompositions, graphs, strided
from hlo_oracle.frontends.torch.captured import Capturing
from hlo_oracle.frontends.torch.compiled_stages import lowered_text
from hlo_oracle.frontends.torch.graphs import at_line, op_name
from hlo_oracle.frontends.torch.tensors import array_of


@dataclass(frozen=True, slots=True)
class TracedFunction:
    """A function and its arguments as a program: HLO text, its argument arrays, the paths of its
    results, the name of the compiler that runs it, and a function that does."""

    name: str
    text: str
    arrays: tuple[Array, ...]
    paths: tuple[str, ...]
    peer: str
    call: Callable[[], Any]

    def results(self) -> tuple[Array, ...]:
        """Run the function as its user would; return the arrays of its results."""
        leaves = _pytree.tree_leaves(self.call())
        return tuple(array_of(x).copy() for x in leaves if isinstance(x, torch.Tensor))


def lower(
    function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> TracedFunction:
    """Lower a function or a module, compiled or not, for its arguments.

    Raises Unsupported for random operations, and for others that do not convert, with their line;
    Error where torch cannot trace it.
    """
    original, peer = _original(function)
    state = _state(original)
    leaves, structure = _pytree.tree_flatten((tuple(arguments), dict(keywords)))
    places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    tensors = [*state.values(), *(leaves[n] for n in places)]
    known = len(tensors)
    paths: list[str] = []
    written: list[Any] = []  # outside of the arguments

    def flat(*given: Any) -> list[Any]:
        own = dict(zip(state, given, strict=False))
        filled = list(leaves)
        for n, x in zip(places, given[len(own) : known], strict=True):
            filled[n] = x
        positional, named = _pytree.tree_unflatten(filled, structure)
        outside = list(zip(tensors[known:], given[known:], strict=True))
        with Capturing(outside) as capturing:
            value = (
                torch.func.functional_call(original, own, positional, named)
                if state
                else original(*positional, **named)
            )
            value = capturing.replaced(value)
            written[:] = capturing.written()
        found = _pytree.tree_flatten_with_path(value)[0]
        paths[:] = [_pytree.keystr(path) for path, x in found if isinstance(x, torch.Tensor)]
        return [x for _, x in found if isinstance(x, torch.Tensor)]

    name = str(getattr(original, "__name__", type(original).__name__))
    try:
        module = _traced(name, flat, tensors)
    except Error:  # as torch says of such writes, mostly
        if not written:
            raise
    if written:
        tensors += written
        module = _traced(name, flat, tensors)
    arrays = tuple(array_of(x).copy() for x in tensors)  # the call may write into them
    text, constants = _text(module, arrays)
    return TracedFunction(
        name, text, (*arrays, *constants), tuple(paths), peer,
        call=lambda: function(*arguments, **keywords),
    )  # fmt: skip


def _original(function: Any) -> tuple[Any, str]:
    """Unwrap a function compiled by torch.compile; return it, and the name of its compiler."""
    version = f"PyTorch {torch.__version__}"
    inner = getattr(function, "_orig_mod", None)
    if inner is None:
        inner = getattr(function, "_torchdynamo_orig_callable", None)
    if inner is None:
        return function, f"{version}, eager"
    return inner, f"{version}, torch.compile"


def _state(original: Any) -> dict[str, Any]:
    """Return a module's parameters and buffers by name; none for a function."""
    if not isinstance(original, torch.nn.Module):
        return {}
    return {**dict(original.named_parameters()), **dict(original.named_buffers())}


def _traced(name: str, flat: Callable[..., Any], tensors: Sequence[Any]) -> Any:
    """Trace a function of tensors to core ATen, with writes functionalised."""
    given = [x.detach().clone().requires_grad_(x.requires_grad) for x in tensors]
    # Once for gradients inside of the function, which functionalize does not see, then once for
    # what is left: writes.
    traced = partial(make_fx, tracing_mode="fake", _allow_non_fake_inputs=True)
    try:
        with _without_fused_kernels():
            first = traced(flat, decomposition_table=decompositions.early())(*given)
            strided.require_own_memory(first.graph)
            pure = torch.func.functionalize(first, remove="mutations_and_views")
            detached = [x.detach() for x in given]
            module = traced(pure, decomposition_table=decompositions.table())(*detached)
    except Unsupported:
        raise
    except Exception as error:  # whatever the function raises while it is traced
        line = next(iter(str(error).splitlines()), "")
        raise Error(f"{name}: torch cannot trace it: {type(error).__name__}: {line}") from error
    return module


@contextmanager
def _without_fused_kernels() -> Iterator[None]:
    """Trace without oneDNN, whose kernels are fused: what they compute has no operations of
    ATen."""
    enabled = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.set_flags(False, _fp32_precision=None)
    try:
        yield
    finally:
        torch.backends.mkldnn.set_flags(enabled, _fp32_precision=None)


def _text(module: Any, arrays: Sequence[Array]) -> tuple[str, list[Array]]:
    """Return the HLO of a traced function, and the constants that follow its array parameters."""
    for node in [*_written(module.graph), *_checks(module.graph)]:
        module.graph.erase_node(node)
    module.graph.eliminate_dead_code()  # derivatives of derivatives have tensors of sizes alone
    nodes = graphs.computing(module.graph)
    for node in nodes:
        if (why := graphs.reason_against(node)) is not None:
            raise Unsupported(f"{op_name(node)}{at_line(node)}: {why}: no program to judge by")
    inputs = [n for n in module.graph.nodes if n.op == "placeholder"]
    constants = graphs.constants(module.graph)
    (output,) = (n for n in module.graph.nodes if n.op == "output")

    def function(*given: Any) -> Any:
        values = dict(zip((*inputs, *constants), given, strict=True))
        graphs.computed(nodes, values)
        return graphs.mapped(output.args[0], values)

    extra = [array_of(getattr(module, str(node.target))) for node in constants]
    shapes = [
        jax.ShapeDtypeStruct(x.shape, x.dtype)  # type: ignore[no-untyped-call]
        for x in (*arrays, *extra)
    ]
    return lowered_text(function, shapes), extra


def _written(graph: Any) -> list[Any]:
    """Find the copies into inputs at the end of a graph, which are not results."""
    found = []
    for node in graph.nodes:
        is_copy = op_name(node) == "aten.copy_.default"
        if is_copy and node.args[0].op == "placeholder" and not node.users:
            found.append(node)
    return found


def _checks(graph: Any) -> list[Any]:
    """Find the checks of factorizations, which raise an error and have no result."""
    return [n for n in graph.nodes if op_name(n) == "aten._linalg_check_errors.default"]


def is_torch(program: object, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    """Test for a module of torch, or a tensor among the arguments."""
    if isinstance(program, torch.nn.Module):
        return True
    leaves = _pytree.tree_leaves((tuple(arguments), dict(keywords)))
    return any(isinstance(leaf, torch.Tensor) for leaf in leaves)
