"""Fourier transforms near underflow, by a compiler that flushes subnormals on the way."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import interp
from hlo.values import Array
from interp.envelope.budget import FAST, XLA_CPU
from interp.envelope.enclosure import contains
from interp.envelope.evaluation import enclose

_TINY = 2.0**-126


def _flushed(values: Array) -> Array:
    """Replace components that are subnormal by zeros, of complex64."""
    parts = (values.real.astype(np.float32), values.imag.astype(np.float32))
    real, imag = (np.where(np.abs(part) < _TINY, np.float32(0), part) for part in parts)
    return np.asarray(real + 1j * imag, np.complex64)


def _transformed(values: Array, sign: int) -> Array:
    """Transform by halves (Cooley and Tukey), and flush after each step."""
    size = len(values)
    if size == 1:
        return values
    even, odd = _transformed(values[::2], sign), _transformed(values[1::2], sign)
    turned = _flushed(np.exp(sign * 2j * np.pi * np.arange(size // 2) / size) * odd)
    return _flushed(np.concatenate([even + turned, even - turned]))


@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT"])
def test_a_transform_may_lose_what_is_flushed_on_the_way(kind: str) -> None:
    operand, size = ("f32", 33) if kind == "RFFT" else ("c64", 64)
    module = hlo.parse(f"""HloModule m
ENTRY e {{
  a = {operand}[64] parameter(0)
  ROOT r = c64[{size}] fft(a), fft_type={kind}, fft_length={{64}}
}}""")
    a = np.full(64, 3.0 * _TINY, np.float32 if kind == "RFFT" else np.complex64)
    a[:32] = 3.9 * _TINY
    peers = _transformed(_flushed(a), 1 if kind == "IFFT" else -1)[:size]
    actual = _flushed(peers / 64) if kind == "IFFT" else peers
    exact = np.asarray(interp.evaluate(module, a))
    apart = max(np.abs(actual - exact).max(), 1e-45)
    assert apart > 10 * _TINY / (64 if kind == "IFFT" else 1)
    assert contains(enclose(module, a, peer=XLA_CPU).result, actual).all()
    assert not contains(enclose(module, a, peer=FAST).result, actual).all()
