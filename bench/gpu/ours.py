"""Measure generated CUDA: bytes and operations a second, beside a copy and the peak.

The first program is a copy of 1 GiB, the bandwidth that can be reached. Bytes are those of the
arguments and of the results, once each; operations are those of dots and convolutions, two for each
product. The peak is that of the GPU's data sheet for the type of most of them, without sparsity.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import hlo
from backend_c.ir.settings import Numerics, launched
from backend_c.lower.plan import Plan
from backend_c.native.cache import open_cache
from backend_c.native.cuda_bound_call import BoundCall
from backend_c.native.cuda_compilers import CudaCompiler, cubin, find_cuda_compiler
from backend_c.native.cuda_driver import Device
from backend_c.pipeline import lowered, on_device
from backend_c.projects.targets import cuda_parts
from bench.gpu import clock, programs
from bench.speed.work import Work, work
from hlo.module import Module

# Dense TFLOP/s of data sheets, by part of the name.
_TYPES = ("bf16", "s8", "f32", "f64")
_PEAKS = {
    "A100": (312, 624, 19.5, 9.7),
    "H100 PCIe": (756, 1513, 51, 26),
    "H100": (989, 1979, 67, 34),
    "H200": (989, 1979, 67, 34),
    "B200": (2250, 4500, 80, 40),
}
_KERNELS = 6  # the longest, of each program


def _plan(module: Module) -> Plan:
    """Lower a program with fast numerics."""
    return lowered(module, launched(Numerics.FAST))


def compile_all(names: Sequence[str], architectures: Sequence[str], cubins: Path) -> Iterator[str]:
    """Compile programs; yield a line for each, with the error if it cannot be compiled."""
    compiler, cache = find_cuda_compiler(os.environ), open_cache(cubins)
    for name in names:
        try:
            text, _ = cuda_parts([_plan(programs.module(name, emulated=False))])
            sizes = [len(cubin(text, one, compiler, cache)) for one in architectures]
            yield f"{name}: {', '.join(f'{size:,}' for size in sizes)} bytes"
        except hlo.Error as error:
            yield f"{name}: {error}"


class Ours:
    """Measures programs on a device; ``cubins`` is a directory of kernels compiled before."""

    def __init__(
        self, device: Device, compiler: CudaCompiler, cubins: Path | None, emulated: bool
    ) -> None:
        self._device, self._compiler = device, compiler
        self._cubins, self._emulated = cubins, emulated
        self._copied = 0.0  # GB/s, once known

    def row(self, name: str) -> dict[str, Any]:
        """Measure a program; raise hlo.Error if it cannot be compiled or run."""
        bound, needed, taken = self._timed(name)
        reached = _gigabytes(needed, taken)
        done = needed.products / taken / 1e9 if needed.products else None
        peak = _peak(self._device.name, needed)
        return {
            "name": name,
            "ms": taken,
            "GB/s": reached,
            "% of copy": 100 * reached / self._copy(),
            "TFLOP/s": done,
            "% of peak": 100 * done / peak if done and peak else None,
            "device": self._device.name,
            "kernels": [
                (one.kernel, one.instruction, one.launches, round(one.milliseconds, 5))
                for one in bound.profile()[:_KERNELS]
            ],
        }

    def _copy(self) -> float:
        """Measure the bandwidth of the copy in GB/s, once."""
        if not self._copied:
            _, moved, taken = self._timed(programs.COPY)
            self._copied = _gigabytes(moved, taken)
        return self._copied

    def _timed(self, name: str) -> tuple[BoundCall, Work, float]:
        """Compile and time a program; return it bound to its arguments, its work, and
        milliseconds."""
        module = programs.module(name, self._emulated)
        planned = [(module, _plan(module))]
        (made,) = on_device(planned, self._device, self._compiler, self._cubins)
        bound = made.bind(*programs.arguments(name, module))
        return bound, work(module), clock.milliseconds(bound.enqueue, bound.wait)


def _gigabytes(needed: Work, milliseconds: float) -> float:
    """Compute GB/s from the bytes that are read and written."""
    return (needed.read + needed.written) / milliseconds / 1e6


def _peak(name: str, needed: Work) -> float | None:
    """Return a GPU's peak for the type of most operations; None where it is not known."""
    peaks = next((peaks for part, peaks in _PEAKS.items() if part in name), None)
    most = max(needed.operations, key=lambda kind: needed.operations[kind], default="")
    return peaks[_TYPES.index(most)] if peaks and most in _TYPES else None
