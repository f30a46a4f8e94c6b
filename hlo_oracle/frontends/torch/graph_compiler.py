"""Compile graphs of TorchDynamo: ``torch.compile(model, backend="hlo_oracle")``.

AOTAutograd turns each into graphs of ATen operations, for a training step one forward and one
backward. Operations that convert become stages of C; PyTorch runs the others (:mod:`.stages`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch.fx import Graph, GraphModule, Node

from hlo.errors import ArgumentError, Unsupported
from hlo_oracle.frontends.torch import (
    control_flow,
    decompositions,
    graph_breaks,
    graphs,
    rewriting,
    stages,
)
from hlo_oracle.frontends.torch.compiled_stages import CompiledStage, Layout, Options
from hlo_oracle.frontends.torch.explanation import (
    EagerNode,
    Explanation,
    GraphReport,
    History,
)
from hlo_oracle.frontends.torch.graphs import NodeError, at_line, op_name
from hlo_oracle.frontends.torch.tensors import hint_of, order_of

HISTORY = History(bound=256)  # of this process: explain() reads it
_INSTEAD: Mapping[Any, Callable[..., Any]] = {
    # A reshape views where it can: C may lay out a tensor otherwise than the kernels of the trace.
    torch.ops.aten.view.default: torch.ops.aten.reshape.default,
    torch.ops.aten._unsafe_view.default: torch.ops.aten.reshape.default,
    torch.ops.aten.bernoulli.p: rewriting.drawn_in_memory,
}
_ALONE = "it is alone: a call of C would cost more than it saves"
_LEAST = 2  # operations: a stage of fewer costs more to call than it saves


def compiled_module(
    module: GraphModule, inputs: Sequence[Any], *, options: dict[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """Compile a graph of TorchDynamo. ``options`` are those of :class:`Options`, as a dictionary;
    ``mode`` is ignored."""
    compiled: Callable[..., Any] = compiler(Options.of(options), HISTORY)(module, inputs)
    return compiled


def explain(
    function: Callable[..., Any] | None,
    *arguments: Any,
    options: dict[str, Any] | None = None,
    **named: Any,
) -> Explanation:
    """Compile a function anew, call it once, and report on its graphs; without a function, report
    on those compiled last."""
    if function is None:
        return HISTORY.explanation()
    if not callable(function):
        raise ArgumentError(f"explain takes a function or a module, not {function!r:.80}")
    history = History(bound=256)
    compiled = torch.compile(function, backend=compiler(Options.of(options), history))
    with graph_breaks.Breaks() as breaks:
        compiled(*arguments, **named)
    return Explanation(history.explanation().graphs, breaks.found())


def compiler(options: Options, history: History, *, least: int = _LEAST) -> Callable[..., Any]:
    """Make a TorchDynamo backend that adds its reports to a history. Stages of fewer than ``least``
    operations, views not counted, are left to PyTorch."""
    from functorch.compile import make_boxed_func, min_cut_rematerialization_partition

    def compile_as(kind: str) -> Callable[..., Any]:
        def compiled(module: GraphModule, inputs: Sequence[Any]) -> Any:
            return make_boxed_func(compiled_graph(module, kind, options, history, least=least))

        return compiled

    traced: Callable[..., Any] = aot_autograd(
        fw_compiler=compile_as("forward"),
        bw_compiler=compile_as("backward"),
        inference_compiler=compile_as("inference"),
        decompositions=decompositions.table(),
        partition_fn=min_cut_rematerialization_partition,
    )

    def chosen(module: GraphModule, inputs: Sequence[Any], **named: Any) -> Callable[..., Any]:
        with decompositions.without_those_of_autograd():
            compiled: Callable[..., Any] = traced(module, inputs, **named)
        return compiled

    return chosen


def compiled_graph(
    module: GraphModule, kind: str, options: Options, history: History, *, least: int = _LEAST
) -> Callable[..., Any]:
    """Compile a graph of ATen operations; PyTorch runs the nodes that do not convert.

    Raises Unsupported for such nodes if the options allow no fallback; random ones are always
    allowed.
    """
    rewriting.prepare(module.graph)
    against = {
        node: why
        for node in graphs.computing(module.graph)
        if (why := rewriting.reason_against(node)) is not None
    }
    # What C does not take shows only when a stage is compiled: then one more node is left to
    # PyTorch, and the graph is divided anew.
    while True:
        try:
            division = Division(module, against, options, least)
            division.prepare()
            break
        except NodeError as error:
            if error.node in against:
                raise
            against[error.node] = error.reason
    if not options.fallback:
        _require_all(against)
    history.note(_report(kind, division, against))
    return division.run


def _require_all(against: Mapping[Node, str]) -> None:
    for node, why in against.items():
        if why != rewriting.FREE and not graphs.is_random(node):
            raise Unsupported(
                f"{op_name(node)}{at_line(node)}: {why}; with options={{'fallback': True}} PyTorch"
                " runs it"
            )


def _report(kind: str, division: Division, against: Mapping[Node, str]) -> GraphReport:
    eager = tuple(
        EagerNode(op_name(node), why, graphs.line_of(node))
        for node, why in against.items()
        if why != rewriting.FREE
    ) + tuple(
        EagerNode(op_name(node), _ALONE, graphs.line_of(node)) for node in division.left_alone
    )
    counts = tuple(len(nodes) for nodes in division.compiled_nodes)
    return GraphReport(kind, counts, eager, tuple(division.stages))


class Division:
    """A graph divided into stages; ``run`` takes its inputs and returns its outputs.

    PyTorch runs the nodes in ``against``.
    """

    def __init__(
        self, module: GraphModule, against: Mapping[Node, str], options: Options, least: int
    ) -> None:
        self._module, self._options = module, options
        self._nodes = graphs.computing(module.graph)
        places = stages.placed(
            self._nodes,
            lambda node: graphs.nodes_in((node.args, node.kwargs)),
            lambda node: _item_of(node) not in against,
            lambda node: graphs.is_random(node) or graphs.has_effect(node),
        )
        self.stages: list[CompiledStage] = []
        self.compiled_nodes: list[list[Node]] = []
        self.left_alone: list[Node] = []  # of stages of fewer than ``least`` operations
        self._graph = Graph()
        self._copies: dict[Node, Any] = {}
        self._modules: dict[str, Any] = {}
        self._given: list[list[Any]] = []
        self._read: set[Node] = set()
        for node in module.graph.nodes:
            if node.op in ("placeholder", "get_attr"):
                self._copies[node] = self._graph.node_copy(node)
        for is_compiled, nodes in stages.in_order(places):
            if is_compiled and _work(nodes) >= least:
                self._compile(nodes)
            else:
                if is_compiled:
                    self.left_alone += [node for node in nodes if not _is_free(node)]
                self._keep(nodes)
        (output,) = (node for node in module.graph.nodes if node.op == "output")
        self._keep([output])
        self.run = self._runner()

    def prepare(self) -> None:
        """Compile each stage for the shapes that the graph was traced with."""
        for stage, given in zip(self.stages, self._given, strict=True):
            stage.prepare(given)

    def _keep(self, nodes: Sequence[Node]) -> None:
        """Copy nodes for PyTorch to run, some as other functions (``_INSTEAD``)."""
        for node in nodes:
            copy = self._graph.node_copy(node, self._copies.__getitem__)
            if (instead := _INSTEAD.get(node.target)) is not None:
                given = copy.args
                self._graph.erase_node(copy)
                copy = self._graph.call_function(instead, given)
            self._copies[node] = copy

    def _compile(self, nodes: Sequence[Node]) -> None:
        """Replace nodes by one call of a compiled stage."""
        own = set(nodes)
        inputs = dict.fromkeys(
            x
            for node in nodes
            for x in graphs.nodes_in((node.args, node.kwargs))
            if x not in own and control_flow.subgraph_of(x) is None
        )
        outputs = [node for node in nodes if any(user not in own for user in node.users)]
        stage = CompiledStage(nodes, tuple(inputs), outputs, self._options)
        name = f"stage_{len(self.stages)}"
        self.stages.append(stage)
        self.compiled_nodes.append(list(nodes))
        self._given.append([_traced(node.meta["val"]) for node in inputs])
        self._modules[name] = stage
        call = self._graph.call_function(stage, tuple(self._copies[node] for node in inputs))
        for n, node in enumerate(outputs):
            self._copies[node] = self._graph.call_function(_item, (call, n))

    def _runner(self) -> Callable[..., Any]:
        """Make the function that runs all stages."""
        self._graph.lint()
        forward: Callable[..., Any] = GraphModule(self._module, self._graph).forward
        return forward


def _item_of(node: Node) -> Node:
    """Return the node whose result a getitem takes, or the node itself."""
    return node.args[0] if node.target is operator.getitem else node


def _item(values: Sequence[Any], number: int) -> Any:
    return values[number]


def _work(nodes: Sequence[Node]) -> int:
    """Count the nodes that compute, not only view, those of functions that a node takes, too."""
    inner = (graphs.computing(g.graph) for node in nodes for g in control_flow.subgraphs(node))
    return sum(not _is_free(node) for node in nodes) + sum(map(_work, inner))


def _is_free(node: Node) -> bool:
    """Test for a view, or for an element of a list of results."""
    return rewriting.is_view(node) or node.target is operator.getitem


def _traced(value: Any) -> Any:
    """Return the layout of a fake tensor, or a number; symbolic sizes are replaced by their
    hints."""
    if not isinstance(value, torch.Tensor):
        return hint_of(value)
    sizes = tuple(map(hint_of, value.shape))
    strides = tuple(map(hint_of, value.stride()))
    return Layout(value.dtype, sizes, strides, order_of(sizes, strides))
