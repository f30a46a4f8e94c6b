"""Compile the nodes of a graph's stage to C, for each layout of their inputs, and run them on
tensors."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch.fx import Node

import backend_c
from backend_c.native.cache import Directory
from hlo.errors import ArgumentError, Unsupported
from hlo_oracle.frontends import jax_functions, jax_internals
from hlo_oracle.frontends.torch.graphs import NodeError, computed
from hlo_oracle.frontends.torch.tensors import (
    array_of,
    dense_order,
    hint_of,
    numpy_type,
    order_of,
    tensor_of,
)
from hlo_oracle.loading import objects


@dataclass(frozen=True, slots=True)
class Options:
    """Compile options: ``numerics``, ``threads`` and ``cache`` are those of
    :func:`backend_c.compile`. Without ``fallback``, an operation that does not convert is an
    error."""

    numerics: str = "fast"
    threads: int | None = None
    cache: Directory | None = None
    fallback: bool = True

    @classmethod
    def of(cls, given: dict[str, Any] | None) -> Options:
        """Make options of torch.compile's dictionary; ArgumentError for an unknown name."""
        known = list(cls.__dataclass_fields__)
        for name in given or {}:
            if name not in known:
                raise ArgumentError(f"option {name!r}: there are {', '.join(known)}")
        return cls(**(given or {}))


class Layout(NamedTuple):
    """A tensor's layout in memory: its type, sizes and strides, and its dimensions ordered from the
    slowest to the fastest; C sees the dimensions in that order."""

    dtype: Any
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    order: tuple[int, ...]

    @classmethod
    def of(cls, tensor: Any) -> Layout:
        """Return the layout of a tensor."""
        sizes, strides = tuple(tensor.shape), tuple(tensor.stride())
        return cls(tensor.dtype, sizes, strides, order_of(sizes, strides))

    @property
    def shape(self) -> Any:
        """The shape and type that C sees, as a JAX ShapeDtypeStruct."""
        sizes, dtype = [self.sizes[n] for n in self.order], numpy_type(self.dtype)
        return jax.ShapeDtypeStruct(sizes, dtype)  # type: ignore[no-untyped-call]

    def array(self, tensor: Any) -> Any:
        """View a tensor's memory as an array with dimensions in this order; a copy if it has
        another layout."""
        array = array_of(tensor)
        return array.transpose(self.order) if self.order else array


Key = tuple[Any, ...]  # a Layout, or a number, for each input


class Specialization(NamedTuple):
    """C and HLO for inputs of one layout each: the inputs that are tensors; and for each output its
    place, or the number that it is."""

    text: str
    executable: backend_c.Executable
    layouts: tuple[tuple[int, Layout], ...]
    outputs: tuple[Any, ...]

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """Run on tensors; return new tensors and numbers."""
        arrays = [layout.array(inputs[n]) for n, layout in self.layouts]
        value: Any = self.executable(*arrays)
        result = iter(value if isinstance(value, tuple) else (value,))
        return [
            output.tensor(next(result)) if isinstance(output, Placed) else output
            for output in self.outputs
        ]


class Placed(NamedTuple):
    """Where C has an output, which is dense: its sizes and strides; and its strides in eager's
    memory, if they leave gaps there."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    gapped: tuple[int, ...] | None

    def tensor(self, array: Any) -> Any:
        """View an array's memory as the tensor, or copy it to memory with gaps."""
        tensor = tensor_of(array)
        if tensor.stride() != self.strides:
            tensor = tensor.as_strided(self.sizes, self.strides)
        if self.gapped is None:
            return tensor
        return torch.empty_strided(self.sizes, self.gapped, dtype=tensor.dtype).copy_(tensor)


class CompiledStage:
    """A stage of a graph: runs nodes on the values of ``inputs``, and returns those of ``outputs``.

    C is compiled for each layout of the inputs.
    """

    def __init__(
        self, nodes: Sequence[Node], inputs: Sequence[Node], outputs: Sequence[Node],
        options: Options,
    ) -> None:  # fmt: skip
        self._nodes, self._inputs, self._outputs = tuple(nodes), tuple(inputs), tuple(outputs)
        self._options = options
        self._made: dict[Key, Specialization] = {}
        self.__name__ = "compiled_stage"  # FX asks callables for it

    def __call__(self, *inputs: Any) -> list[Any]:
        """Run on tensors and numbers; compile at the first call with their layouts."""
        key = tuple(
            (x.dtype, x.shape, x.stride()) if isinstance(x, torch.Tensor) else (type(x), x)
            for x in inputs
        )
        made = self._made.get(key)
        if made is None:
            made = self.prepare(
                [Layout.of(x) if isinstance(x, torch.Tensor) else x for x in inputs]
            )
        return made(inputs)

    @property
    def executables(self) -> tuple[backend_c.Executable, ...]:
        """The executables compiled so far, in order."""
        return tuple(made.executable for made in self._made.values())

    @property
    def texts(self) -> tuple[str, ...]:
        """The HLO of each executable."""
        return tuple(made.text for made in self._made.values())

    def prepare(self, given: Sequence[Any]) -> Specialization:
        """Compile for layouts and numbers. Raises Unsupported; a NodeError if a single node is the
        reason."""
        key = tuple(
            (x.dtype, torch.Size(x.sizes), x.strides) if isinstance(x, Layout) else (type(x), x)
            for x in given
        )
        text, outputs = self._lowered(given)
        options = self._options
        try:
            executable = backend_c.compile(
                objects.load(text),
                numerics=options.numerics,
                threads=options.threads,
                cache=options.cache,
            )
        except Unsupported as error:
            raise _blamed(self._nodes, error) from error
        layouts = tuple((n, x) for n, x in enumerate(given) if isinstance(x, Layout))
        made = self._made[key] = Specialization(text, executable, layouts, outputs)
        return made

    def _lowered(self, given: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
        """Lower the nodes to HLO for layouts and numbers; return it, and how each output is made
        from its result (see :class:`Specialization`)."""
        outputs: list[Any] = []

        def function(*arrays: Any) -> Any:
            found = iter(arrays)
            values = {
                node: _in_order(next(found), x.order) if isinstance(x, Layout) else x
                for node, x in zip(self._inputs, given, strict=True)
            }
            computed(self._nodes, values)
            # JAX may trace this function more than once.
            outputs.clear()
            return [_output(values[node], node, outputs) for node in self._outputs
                    if not _is_number(values[node], outputs)]  # fmt: skip

        shapes = [x.shape for x in given if isinstance(x, Layout)]
        return lowered_text(function, shapes), tuple(outputs)


def _is_number(value: Any, outputs: list[Any]) -> bool:
    """Test for an output that is a number known at compile time (a size, say), and append it to
    ``outputs``."""
    if isinstance(value, bool | int | float):
        outputs.append(value)
        return True
    return False


def _output(value: Any, node: Node, outputs: list[Any]) -> Any:
    """Permute an output to the order of dimensions that torch expects in memory; append its
    place."""
    order = _expected_order(node, value.ndim)
    steps = {d: math.prod(value.shape[x] for x in order[n + 1 :]) for n, d in enumerate(order)}
    # A stride of a dimension of one element, or of no elements, leads nowhere: it is as in eager.
    wanted = node.meta["val"].stride()
    strides = tuple(
        own if isinstance(own, int) and (size == 1 or not value.size) else steps[d]
        for d, (size, own) in enumerate(zip(value.shape, wanted, strict=True))
    )
    outputs.append(Placed(value.shape, strides, wanted if _has_gaps(value.shape, wanted) else None))
    return jnp.transpose(value, order)


def _has_gaps(sizes: Sequence[int], strides: Sequence[Any]) -> bool:
    """Test for strides, known ones, that leave gaps and let no elements share memory: those of
    copies of views that are written in part."""
    if 0 in sizes or not all(isinstance(x, int) for x in strides):
        return False
    extent = 1
    for step, size in sorted((step, size) for step, size in zip(strides, sizes) if size != 1):
        if step < extent:
            return False
        extent = step * size
    return dense_order(sizes, strides) is None


def _expected_order(node: Node, rank: int) -> tuple[int, ...]:
    """Return the memory order of an output's dimensions; row-major if sizes are data."""
    fake = node.meta["val"]
    sizes, strides = (tuple(map(hint_of, x)) for x in (fake.shape, fake.stride()))
    return tuple(range(rank)) if None in (*sizes, *strides) else order_of(sizes, strides)


def _in_order(array: Any, order: tuple[int, ...]) -> Any:
    """Permute an array from memory order to torch's order of dimensions."""
    return jnp.transpose(array, np.argsort(order).tolist()) if order else array


def lowered_text(function: Any, shapes: Sequence[Any]) -> str:
    """Lower a function of arrays to HLO text as for XLA:CPU, with 64-bit types enabled."""
    with jax_internals.with_x64(True):
        traced = jax.jit(function, keep_unused=True).trace(*shapes)
        return jax_functions.text_of(traced.lower(lowering_platforms=("cpu",)))


def _blamed(nodes: Sequence[Node], error: Unsupported) -> Unsupported:
    """Convert an error to a NodeError of the node whose name it contains, the outer one if it takes
    functions; if none, return it unchanged."""
    named = {node.name: node for node in nodes}
    for name in re.findall(r"[A-Za-z_][A-Za-z0-9_]*", str(error).partition("(from ")[2]):
        if name in named:
            return NodeError(named[name], error)
    return error
