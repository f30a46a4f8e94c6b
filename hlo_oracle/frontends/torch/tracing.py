"""Trace a PyTorch function and its arguments to core ATen.

The function is traced with its tensors: those of a module, its parameters and buffers first, then
those among the arguments, then those that it writes without having been given them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree

from hlo.errors import Error, Unsupported
from hlo_oracle.frontends.torch import data_sizes, decompositions, optimizers
from hlo_oracle.frontends.torch.captured import Capturing
from hlo_oracle.frontends.torch.composites import WrittenOut
from hlo_oracle.frontends.torch.graphs import at_line, op_name
from hlo_oracle.frontends.torch.reads import Reads, SingleNumbers


class Tracing:
    """A function and its arguments, to be traced once.

    ``with_numbers`` of its tensors it may read them: ``reads`` tells what it read, which follows
    its results. Else its tensors have types and sizes alone.
    """

    def __init__(
        self, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], *,
        with_numbers: bool,
    ) -> None:  # fmt: skip
        self.name = str(getattr(function, "__name__", type(function).__name__))
        self.reads: Reads | None = None
        self._with_numbers = with_numbers
        self._function = function
        self._state = _state(function)
        self._leaves, self._structure = _pytree.tree_flatten((tuple(arguments), dict(keywords)))
        self._places = [n for n, x in enumerate(self._leaves) if isinstance(x, torch.Tensor)]
        #: The tensors of the program's parameters.
        self.tensors = [*self._state.values(), *(self._leaves[n] for n in self._places)]
        self._given = len(self.tensors)
        self._captured: list[Any] = []  # outside of the arguments, and no parameters yet
        self._written: list[Any] = []  # of these
        self._uses_written = False
        #: Where in the function's value each result is.
        self.paths: list[str] = []
        #: The graph of the operations that the function calls, which may write.
        self.begun: Any = None

    def graph_module(self) -> Any:
        """Trace the function; return a graph of its tensors, whose writes are functionalised.

        Raises Unsupported for views that a program cannot have, Error where torch cannot trace.
        """
        while True:
            try:
                module, error = self._traced(), None
            except Error as raised:  # as torch says of such writes, mostly
                module, error = None, raised
            # Kernels write tensors whose versions stay, as the statistics of a batch norm: where
            # the trace fails for no other, all that it used may be written.
            found = self._written or (self._captured if error else [])
            if not found:
                break
            if len(self.tensors) > self._given and not self._uses_written:
                raise Unsupported(
                    f"{self.name}: it writes tensors that each of its calls makes outside of the"
                    " trace, as the parameters of a module that it makes: make that before, and"
                    " judge a function that uses it"
                )
            self.tensors += found
        if error is not None:
            raise error
        return module

    def decomposed(self, module: Any) -> Any:
        """Trace a graph of operations on the function's tensors to core ATen, without writes.

        Raises Unsupported for views that a program cannot have, Error where torch cannot trace.
        """
        with self._tracing():
            return self._decomposed(module)

    def _traced(self) -> Any:
        self._captured, self._written = [], []
        given = [x.detach().clone().requires_grad_(x.requires_grad) for x in self.tensors]
        with self._tracing():
            # Once for gradients inside of the function, which functionalize does not see, then for
            # what is left: writes, of the function and of decompositions.
            self.begun = self._first(given)
            _require_own_memory(self.begun.graph)
            return self._decomposed(self.begun)

    def _decomposed(self, module: Any) -> Any:
        table = decompositions.table()
        if self._with_numbers:
            table = {**table, **data_sizes.TABLE}
        detached = [x.detach() for x in self.tensors]
        if self._with_numbers:  # the graph is run, and may write into them
            detached = [x.clone() for x in detached]
        for _ in range(2):
            pure = torch.func.functionalize(module, remove="mutations_and_views")
            module = self._by_make_fx(pure, decomposition_table=table)(*detached)
            if not any(map(_writes_between, module.graph.nodes)):
                break
        return module

    @property
    def _by_make_fx(self) -> Callable[..., Any]:
        if self._with_numbers:
            return partial(make_fx, tracing_mode="real", _error_on_data_dependent_ops=False)
        return partial(make_fx, tracing_mode="fake", _allow_non_fake_inputs=True)

    @contextmanager
    def _tracing(self) -> Iterator[None]:
        try:
            with (
                _without_fused_kernels(), _without_log(), torch.random.fork_rng(devices=[]),
                optimizers.restored(),
            ):  # fmt: skip
                yield
        except Unsupported:
            raise
        except Exception as error:  # whatever the function raises while it is traced
            line = next(iter(str(error).splitlines()), "")
            what = f"{self.name}: torch cannot trace it: {type(error).__name__}: {line}"
            raise Error(what) from error

    def _first(self, given: Sequence[Any]) -> Any:
        begun = self._by_make_fx(self._flat, decomposition_table=decompositions.early())
        if self._with_numbers:
            self.reads = Reads()
        with nullcontext() if self.reads is None else self.reads:
            module = begun(*given)
        for node in reversed(module.graph.nodes):
            if not node.users and (_is_number(node) or op_name(node).startswith("profiler.")):
                module.graph.erase_node(node)
        module.recompile()
        return module

    def _flat(self, *given: Any) -> list[Any]:
        """Call the function on tensors; return those of its value."""
        own = dict(zip(self._state, given, strict=False))
        filled = list(self._leaves)
        for n, x in zip(self._places, given[len(own) : self._given], strict=True):
            filled[n] = x
        positional, named = _pytree.tree_unflatten(filled, self._structure)
        outside = list(zip(self.tensors[self._given :], given[self._given :], strict=True))
        refusing = SingleNumbers() if self._with_numbers else nullcontext()
        with refusing, Capturing(outside, given) as capturing, WrittenOut():
            value = (
                torch.func.functional_call(self._function, own, positional, named)
                if self._state
                else self._function(*positional, **named)
            )
            value = capturing.replaced(value)
            self._captured, self._written = capturing.captured(), capturing.written()
            self._uses_written = capturing.uses_given()
        found = _pytree.tree_flatten_with_path(value)[0]
        self.paths = [_pytree.keystr(path) for path, x in found if isinstance(x, torch.Tensor)]
        results = [x for _, x in found if isinstance(x, torch.Tensor)]
        if self.reads is not None:
            self.reads.require_unwritten()
            self.paths += [f"number read {n}" for n, _ in enumerate(self.reads.tensors, 1)]
            results += self.reads.tensors
        return results


def _state(function: Any) -> dict[str, Any]:
    """Return a module's parameters and buffers by name; none for a function."""
    if not isinstance(function, torch.nn.Module):
        return {}
    return {**dict(function.named_parameters()), **dict(function.named_buffers())}


def _is_number(node: Any) -> bool:
    value = node.meta.get("val")
    return isinstance(value, bool | int | float | complex)


def _require_own_memory(graph: Any) -> None:
    """Raise Unsupported for a view by strides of a view that lies in its memory otherwise than in
    order: functionalization copies that view, and the strides would count in the copy."""
    for node in graph.nodes:
        if "as_strided" not in op_name(node) or node.args[0].op == "placeholder":
            continue
        fake = node.args[0].meta["val"]
        if not fake.is_contiguous() or fake.storage_offset():
            raise Unsupported(f"{op_name(node)}{at_line(node)}: strides in the memory of a view")


def _writes_between(node: Any) -> bool:
    """Test for a write, of a decomposition, into what is not an input of the program, or into an
    input that is read later."""
    if op_name(node) != "aten.copy_.default":
        return False
    return node.args[0].op != "placeholder" or bool(node.users)


@contextmanager
def _without_fused_kernels() -> Iterator[None]:
    """Trace without oneDNN, whose kernels are fused: what they compute has no operations of
    ATen."""
    enabled = torch.backends.mkldnn.enabled
    # torch.backends.mkldnn.set_flags has other parameters by version, and may set precisions, too.
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(enabled)


@contextmanager
def _without_log() -> Iterator[None]:
    """Trace without torch's log of what fails without numbers: it is traced again with them."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    log.addFilter(_refuse)
    try:
        yield
    finally:
        log.removeFilter(_refuse)


def _refuse(record: logging.LogRecord) -> bool:
    return False
