"""Decompose windows of signal processing, in the order of ATen's own formulas
(ATen/native/TensorFactories.cpp).

A periodic window is a symmetric one of one element more, without its last one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

Window = Callable[..., Any]  # of the number of elements, more than 1, and parameters


def _positions(count: int, dtype: Any) -> Any:
    return torch.arange(count, dtype=dtype)


def _bartlett(count: int, dtype: Any) -> Any:
    n = _positions(count, dtype) * (2.0 / (count - 1))
    first = ((count - 1) >> 1) + 1
    return torch.cat([n[:first], n[first:] * -1 + 2])


def _blackman(count: int, dtype: Any) -> Any:
    n = _positions(count, dtype) * (math.pi / (count - 1))
    return (n * 4).cos() * 0.08 - (n * 2).cos() * 0.5 + 0.42


def _cosine(count: int, dtype: Any, alpha: float, beta: float) -> Any:
    """Compute alpha - beta cos(2 pi n / (count - 1))."""
    n = _positions(count, dtype) * (math.pi * 2.0 / (count - 1))
    return n.cos() * -beta + alpha


def _hann(count: int, dtype: Any) -> Any:
    return _cosine(count, dtype, 0.5, 0.5)


def _hamming(count: int, dtype: Any, alpha: float = 0.54, beta: float = 0.46) -> Any:
    return _cosine(count, dtype, alpha, beta)


def _kaiser(count: int, dtype: Any, beta: float = 12.0) -> Any:
    """Compute I0(beta sqrt(1 - ((n - a) / a)²)) / I0(beta), a half of the last position."""
    half = (count - 1) / 2.0
    distance = (_positions(count, dtype) - half) / half
    inside = (1 - distance * distance).clamp(min=0)
    return torch.i0(beta * torch.sqrt(inside)) / torch.i0(torch.full((), beta, dtype=dtype))


def _made(
    window: Window, length: int, periodic: bool = True, *parameters: float,
    dtype: Any = None, **named: Any,
) -> Any:  # fmt: skip
    dtype = dtype or torch.get_default_dtype()
    if length < 2:
        return torch.ones(length, dtype=dtype)
    count = length + 1 if periodic else length
    return window(count, dtype, *parameters)[:length]


def _table() -> dict[Any, Callable[..., Any]]:
    aten = torch.ops.aten
    kinds = {
        aten.bartlett_window: _bartlett,
        aten.blackman_window: _blackman,
        aten.hamming_window: _hamming,
        aten.hann_window: _hann,
        aten.kaiser_window: _kaiser,
    }
    known = ("default", "periodic", "periodic_alpha", "periodic_alpha_beta", "beta")
    return {
        getattr(packet, overload): partial(_made, window)
        for packet, window in kinds.items()
        for overload in packet.overloads()
        if overload in known
    }


TABLE: dict[Any, Callable[..., Any]] = _table()
