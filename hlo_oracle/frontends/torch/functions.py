"""Lower a PyTorch function and its arguments to one program, to judge the compiler that runs it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import torch
from torch.utils import _pytree

from hlo.errors import Error, Unsupported
from hlo.values import Array
from hlo_oracle.frontends.torch import formulas, graphs, sequences, values_between
from hlo_oracle.frontends.torch.compiled_stages import lowered_text
from hlo_oracle.frontends.torch.graphs import at_line, op_name
from hlo_oracle.frontends.torch.reads import Reads, require_same
from hlo_oracle.frontends.torch.tensors import array_of
from hlo_oracle.frontends.torch.tracing import Tracing
from hlo_oracle.frontends.torch.unwritten import require_written
from hlo_oracle.frontends.torch.values_between import ValuesBetween


@dataclass(frozen=True, slots=True)
class TracedFunction:
    """A function and its arguments as a program: HLO text, its argument arrays, the paths of its
    results, the name of the compiler that runs it, a function that does, and its trace. ``reads``
    are the numbers that it read of its tensors, if any: they follow the results."""

    name: str
    text: str
    arrays: tuple[Array, ...]
    paths: tuple[str, ...]
    peer: str
    call: Callable[[], Any]
    tracing: Tracing
    reads: Reads | None = None
    readings: tuple[Any, ...] = ()  # graphs of other programs that are legal, too

    def results(self) -> tuple[Array, ...]:
        """Run the function as its user would; return the arrays of its results, and of what it
        reads. Raises Error if that is not what its trace read."""
        if self.reads is None:
            return _arrays(self.call())
        with Reads() as ran:
            value = self.call()
        require_same(self.name, self.reads, ran)
        return (*_arrays(value), *ran.copies())

    def other_programs(self) -> Iterator[tuple[str, tuple[Array, ...]]]:
        """Yield other programs of the function, and their arguments: with the sequences of numbers
        that PyTorch's own kernels make (:mod:`sequences`), and with operations by their documented
        formulas (:mod:`formulas`), if it has any."""
        inputs = self.arrays[: len(self.tracing.tensors)]
        for graph in self.readings:
            text, constants = _text(copy.deepcopy(graph), inputs)
            yield text, (*inputs, *constants)

    def between(self) -> ValuesBetween | None:
        """Run the operations that the function calls one by one, for their values; None for one
        that reads numbers, or if they take too much memory. Raises Error where PyTorch does not run
        them so."""
        if self.reads is not None:
            return None
        inputs = self.arrays[: len(self.tracing.tensors)]
        try:
            begun = values_between.showing(self.tracing.begun)
            found = values_between.run(begun, inputs, len(self.paths))
        except Exception as error:  # whatever an operation raises
            raise Error(f"{self.name}: {type(error).__name__}: {error}") from error
        if found is None:
            return None
        text, constants = _text(self.tracing.decomposed(begun), inputs)
        return ValuesBetween(text, (*inputs, *constants), found.results, found.values)


def _arrays(value: Any) -> tuple[Array, ...]:
    leaves = _pytree.tree_leaves(value)
    return tuple(array_of(x).copy() for x in leaves if isinstance(x, torch.Tensor))


def lower(
    function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> TracedFunction:
    """Lower a function or a module, compiled or not, or an exported program, for its arguments.

    One that torch cannot trace without the numbers of its tensors, since its path or the sizes of
    its results depend on them, is traced with them: its program holds for these arguments.

    Raises Unsupported for random operations, and for others that do not convert, with their line;
    Error where torch cannot trace it.
    """
    if isinstance(function, torch.export.ExportedProgram):
        function = function.module()
    original = _original(function)
    version = f"PyTorch {torch.__version__}"
    is_eager = original is function
    peer = f"{version}, eager" if is_eager else f"{version}, torch.compile"

    def lowered(*, with_numbers: bool) -> TracedFunction:
        tracing = Tracing(original, arguments, keywords, with_numbers=with_numbers)
        module = tracing.graph_module()
        arrays = tuple(array_of(x).copy() for x in tracing.tensors)  # the call may write into them
        # Before the conversion changes the graph.
        others = sequences.with_own(module), formulas.with_formulas(module)
        text, constants = _text(module, arrays)
        return TracedFunction(
            tracing.name, text, (*arrays, *constants), tuple(tracing.paths), peer,
            call=lambda: function(*arguments, **keywords), tracing=tracing, reads=tracing.reads,
            readings=tuple(filter(None, others)),
        )  # fmt: skip

    try:
        return lowered(with_numbers=False)
    except Error as error:
        if not is_eager:  # what a compiled function reads is not seen
            raise
        reason = error
    try:
        return lowered(with_numbers=True)
    except Unsupported:
        raise
    except Error:  # of the function, or of a trace with numbers alone
        raise reason from None


def _original(function: Any) -> Any:
    """Unwrap a function compiled by torch.compile; return any other as it is."""
    inner = getattr(function, "_orig_mod", None)
    if inner is None:
        inner = getattr(function, "_torchdynamo_orig_callable", None)
    return function if inner is None else inner


def _text(module: Any, arrays: Sequence[Array]) -> tuple[str, list[Array]]:
    """Return the HLO of a traced function, and the constants that follow its array parameters."""
    for node in [*_written(module.graph), *_checks(module.graph)]:
        module.graph.erase_node(node)
    module.graph.eliminate_dead_code()  # derivatives of derivatives have tensors of sizes alone
    nodes = graphs.computing(module.graph)
    for node in nodes:
        if (why := graphs.reason_against(node)) is not None:
            raise Unsupported(f"{op_name(node)}{at_line(node)}: {why}: no program to judge by")
    require_written(module.graph)
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
    """Find the copies into inputs at the end of a graph, which are not results; what is copied is,
    where the function returns an input that it writes."""
    found = []
    for node in graph.nodes:
        if op_name(node) != "aten.copy_.default" or node.args[0].op != "placeholder":
            continue
        target, value = node.args[:2]
        if _has_same_type(target, value):
            node.replace_all_uses_with(value)
        if not node.users:
            found.append(node)
    return found


def _has_same_type(*nodes: Any) -> bool:
    """Test whether values of nodes have one element type and the same sizes."""
    values = [node.meta.get("val") for node in nodes if isinstance(node, torch.fx.Node)]
    types = {(x.dtype, tuple(x.shape)) for x in values if isinstance(x, torch.Tensor)}
    return len(values) == len(nodes) and len(types) == 1


def _checks(graph: Any) -> list[Any]:
    """Find the checks of factorizations, which raise an error and have no result."""
    return [n for n in graph.nodes if op_name(n) == "aten._linalg_check_errors.default"]


def is_torch(program: object, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    """Test for a module of torch, or a tensor among the arguments."""
    if isinstance(program, torch.nn.Module):
        return True
    leaves = _pytree.tree_leaves((tuple(arguments), dict(keywords)))
    return any(isinstance(leaf, torch.Tensor) for leaf in leaves)
