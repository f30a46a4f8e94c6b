"""A function or module of PyTorch with the types of its arguments."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from hlo_oracle.frontends.torch.tensors import tensor_of
from programs.function import Function

_FLOATS = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
}


@dataclass(frozen=True, slots=True)
class TorchFunction:
    """``drawn`` has its arguments; the function of a module makes it, its parameters drawn from the
    seed of torch."""

    drawn: Function
    is_module: bool

    @property
    def name(self) -> str:
        """As it was written."""
        return self.drawn.name

    def called(self, floats: str, seed: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return what is called, and tensors, of the type ``floats`` where f32 was written."""
        given = self.drawn.with_floats(floats).arguments(seed)
        tensors = tuple(tensor_of(np.ascontiguousarray(x).reshape(x.shape)) for x in given)
        if not self.is_module:
            return self.drawn.function, tensors
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(zlib.crc32(self.name.encode()) + seed)
            module = self.drawn.function()
        return module.to(_FLOATS[floats]), tensors


def of(*operands: str) -> Callable[[Callable[..., Any]], TorchFunction]:
    """Decorate a function of tensors with their types, as :func:`programs.function.of`."""

    def made(function: Callable[..., Any]) -> TorchFunction:
        return TorchFunction(Function(function.__name__, function, operands), False)

    return made


def module_of(*operands: str) -> Callable[[Callable[[], Any]], TorchFunction]:
    """Decorate a function that makes a module with the types of the module's arguments."""

    def made(function: Callable[[], Any]) -> TorchFunction:
        return TorchFunction(Function(function.__name__, function, operands), True)

    return made
