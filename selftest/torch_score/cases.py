"""List PyTorch's own samples of its operations, and draw one of them."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree

from selftest.torch_score.table import GRADIENT

_SEED = 42  # which PyTorch's records set where an operation draws random numbers


@dataclass(frozen=True, slots=True)
class Call:
    """A function of tensors, drawn, with these. If ``is_gradient``, its results are to be
    differentiated with respect to those that require it."""

    function: Callable[..., Any]
    tensors: tuple[Any, ...]
    is_gradient: bool

    def results(self, function: Callable[..., Any]) -> list[Any]:
        """Call a function, what was made of that of this call, on its tensors. Return its results,
        their gradients if these are to be taken, and the tensors, which it may have written."""
        return self.results_of(function, *self.tensors)

    def results_of(self, function: Callable[..., Any], *tensors: Any) -> list[Any]:
        """Return the same for other tensors of the same types and sizes."""
        torch.manual_seed(_SEED)
        results = list(function(*tensors))
        gradients = _gradients(results, tensors) if self.is_gradient else []
        return [x.detach() for x in (*results, *gradients, *tensors)]


def _gradients(results: Sequence[Any], tensors: Sequence[Any]) -> list[Any]:
    differentiable = [x for x in results if x.requires_grad]
    cotangents = [_cotangent(x) for x in differentiable]
    sources = [x for x in tensors if x.requires_grad]
    found = torch.autograd.grad(differentiable, sources, cotangents, allow_unused=True)
    return [torch.zeros_like(x) if d is None else d for x, d in zip(sources, found)]


def _cotangent(x: Any) -> Any:
    """Return numbers of a tensor's shape and type, in equal steps: no random ones, which a judge
    would refuse, and rounded once, as kernels differ in the steps of narrow types."""
    ends, wide = ((-1 + 1j, 2 - 3j), "complex128") if x.dtype.is_complex else ((-1, 2), "float64")
    steps = torch.linspace(*ends, x.numel(), dtype=getattr(torch, wide))
    return steps.to(x.dtype).reshape(x.shape)


def names(type_name: str) -> Iterator[tuple[str, str]]:
    """Yield the group and the name of each case of an element type."""
    dtype = getattr(torch, type_name)
    for name, operation in _operations().items():
        if not operation.supports_dtype(dtype, "cpu"):
            continue
        yield from _numbered(name, _samples(operation, dtype, is_gradient=False))
        if operation.supports_autograd and dtype in operation.supported_backward_dtypes("cpu"):
            group = f"{GRADIENT}{name}"
            yield from _numbered(group, _samples(operation, dtype, is_gradient=True))


def _numbered(group: str, samples: Iterator[Any]) -> Iterator[tuple[str, str]]:
    return ((group, f"sample {n}") for n, _ in enumerate(samples))


def drawn(group: str, name: str, type_name: str) -> Call:
    """Draw a case, the same at every call."""
    is_gradient = group.startswith(GRADIENT)
    operation = operation_of(group)
    samples = _samples(operation, getattr(torch, type_name), is_gradient=is_gradient)
    number = int(name.removeprefix("sample "))
    return _call(operation, next(islice(samples, number, None)), is_gradient)


def operation_of(group: str) -> Any:
    """Return PyTorch's record (OpInfo) of the operation of a group of cases."""
    return _operations()[group.removeprefix(GRADIENT)]


@cache
def _operations() -> dict[str, Any]:
    """Return all records by the name of their operation and variant."""
    found = {f"{one.name} {one.variant_test_name}".strip(): one for one in op_db}
    assert len(found) == len(op_db)
    return found


def _samples(operation: Any, dtype: Any, *, is_gradient: bool) -> Iterator[Any]:
    seed = zlib.crc32(operation.full_name.encode())
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    yield from operation.sample_inputs("cpu", dtype, requires_grad=is_gradient)


def _call(operation: Any, sample: Any, is_gradient: bool) -> Call:
    leaves, structure = _pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [n for n, x in enumerate(leaves) if isinstance(x, torch.Tensor)]

    def function(*tensors: Any) -> Any:
        filled = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        operand, arguments, keywords = _pytree.tree_unflatten(filled, structure)
        value = operation(operand, *arguments, **keywords)
        if is_gradient:  # of what is unique only, as PyTorch's tests of gradients
            value = sample.output_process_fn_grad(value)
        return _tensors(value)

    return Call(function, tuple(leaves[n] for n in places), is_gradient)


def _tensors(value: Any) -> tuple[Any, ...]:
    return tuple(x for x in _pytree.tree_leaves(value) if isinstance(x, torch.Tensor))


def is_dense(tensors: Sequence[Any]) -> bool:
    """Test for tensors without sparse or packed ones."""
    return all(x.layout is torch.strided and not x.is_quantized for x in tensors)
