"""Share memory between torch tensors and NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import torch

from hlo.errors import Unsupported
from hlo.values import Array

# Types that NumPy has from ml_dtypes, which torch does not exchange: the integer of their width.
_CARRIERS = {
    name: (torch.uint16 if name == "bfloat16" else torch.uint8)
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
    if hasattr(torch, name)
}
_KNOWN = {
    **{getattr(torch, name): np.dtype(getattr(ml_dtypes, name)) for name in _CARRIERS},
    **{
        getattr(torch, name): np.dtype(name)
        for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                     "uint64", "float16", "float32", "float64", "complex64", "complex128")
        if hasattr(torch, name)
    },
}  # fmt: skip
_OF_NUMPY = {array: tensor for tensor, array in _KNOWN.items()}


def numpy_type(dtype: torch.dtype) -> Any:
    """Return NumPy's type of a torch type; Unsupported if there is none."""
    found = _KNOWN.get(dtype)
    if found is None:
        raise Unsupported(f"{dtype} has no type in HLO here")
    return found


def has_type(dtype: torch.dtype) -> bool:
    """Test for a torch type that NumPy has."""
    return dtype in _KNOWN


def array_of(tensor: Any) -> Array:
    """View a CPU tensor's memory as an array, with its strides, without a copy.

    A tensor that torch has only marked as negated or conjugated is computed. Raises Unsupported for
    other devices and layouts.
    """
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
        raise Unsupported(f"a tensor on {tensor.device}, {tensor.layout}: only dense ones on cpu")
    carrier = _CARRIERS.get(str(tensor.dtype).removeprefix("torch."))
    if carrier is None:
        return np.asarray(tensor.numpy(force=True))
    return np.asarray(tensor.detach().view(carrier).numpy()).view(numpy_type(tensor.dtype))


def tensor_of(array: Any) -> Any:
    """View an array's memory as a tensor."""
    array = np.asarray(array)
    dtype = _OF_NUMPY[array.dtype]
    carrier = _CARRIERS.get(array.dtype.name)
    if carrier is None:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(np.dtype(str(carrier).removeprefix("torch.")))).view(dtype)


def order_of(sizes: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Order the dimensions of a dense tensor from the slowest to the fastest in memory; unchanged
    if it has gaps or overlapping elements."""
    found = dense_order(sizes, strides)
    return tuple(range(len(sizes))) if found is None else found


def dense_order(sizes: Sequence[int], strides: Sequence[int]) -> tuple[int, ...] | None:
    """Order the dimensions of a tensor from the slowest to the fastest in memory; None if it has
    gaps or overlapping elements."""
    order = sorted(range(len(sizes)), key=lambda n: (-strides[n], n))
    # Where a dimension of one element lies does not matter: it stays where it is.
    order = _with_ones_in_place(order, sizes)
    expected = 1
    for n in reversed(order):
        if sizes[n] != 1 and strides[n] != expected:
            return None
        expected *= sizes[n]
    return tuple(order)


def _with_ones_in_place(order: Sequence[int], sizes: Sequence[int]) -> list[int]:
    moved = iter(n for n in order if sizes[n] != 1)
    return [n if size == 1 else next(moved) for n, size in enumerate(sizes)]


def hint_of(value: Any) -> Any:
    """Return the number that a symbolic one was traced with, or the number itself."""
    return value.node.hint if isinstance(value, torch.SymInt | torch.SymFloat) else value
