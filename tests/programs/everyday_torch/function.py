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
    """``drawn`` has its arguments. What ``is_made`` its function makes anew, of parameters that are
    drawn from the seed of torch: a module, or a step of an optimizer."""

    drawn: Function
    is_made: bool

    @property
    def name(self) -> str:
        """Return the name that the function was written with."""
        return self.drawn.name

    def called(self, floats: str, seed: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return what is called, and tensors, of the type ``floats`` where f32 was written."""
        given = self.drawn.with_floats(floats).arguments(seed)
        tensors = tuple(tensor_of(np.ascontiguousarray(x).reshape(x.shape)) for x in given)
        if not self.is_made:
            return self.drawn.function, tensors
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(zlib.crc32(self.name.encode()) + seed)
            made = self.drawn.function(_FLOATS[floats])
        return made, tensors


def of(*operands: str) -> Callable[[Callable[..., Any]], TorchFunction]:
    """Decorate a function of tensors with their types, as :func:`programs.function.of`."""

    def made(function: Callable[..., Any]) -> TorchFunction:
        return TorchFunction(Function(function.__name__, function, operands), False)

    return made


def module_of(*operands: str) -> Callable[[Callable[[], Any]], TorchFunction]:
    """Decorate a function that makes a module with the types of the module's arguments."""

    def made(function: Callable[[], Any]) -> TorchFunction:
        def module(floats: Any) -> Any:
            return function().to(floats)

        return TorchFunction(Function(function.__name__, module, operands), True)

    return made


def made_of(*operands: str) -> Callable[[Callable[[Any], Any]], TorchFunction]:
    """Decorate a function that makes another one, of a type of floats, with the types of the
    latter's arguments."""

    def made(function: Callable[[Any], Any]) -> TorchFunction:
        return TorchFunction(Function(function.__name__, function, operands), True)

    return made
