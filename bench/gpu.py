"""Measure programs on the first GPU: bytes and operations a second, beside a copy and the peak.

    python -m bench.gpu [--number N] [--json] [--emulated]
    python -m bench.gpu --compile SM … --cubins DIR

The first program is a copy of 1 GiB: what is reached of memory's bandwidth. Bytes are those of the
arguments and of the results, once each; operations are those of dots and convolutions, two for each
product. The peak is that of the GPU's data sheet for the type of most of them, without sparsity.
``--compile`` makes the cubins of all programs for some architectures, which needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hlo
from backend_c.emit.targets import cuda_parts
from backend_c.ir.settings import Numerics, launched
from backend_c.lower.plan import Plan
from backend_c.native.cache import open_cache
from backend_c.native.cuda_compilers import CudaCompiler, cubin, find_cuda_compiler
from backend_c.native.cuda_driver import Device
from backend_c.pipeline import lowered, on_device
from bench.speed.work import Work, work
from fuzz.compilers.packed_cubins import opened
from hlo.module import Module
from hlo_oracle.arguments import from_seed

_ROOT = Path(__file__).parents[1]
_FOLDERS = (_ROOT / "tests" / "corpus" / "jax", _ROOT / "bench" / "programs")
_COPY = "HloModule copy\nENTRY e {{ x = u8[{size}] parameter(0)\n ROOT y = u8[{size}] copy(x) }}"
_COPIED, _COPIED_EMULATED = 1 << 30, 1 << 16
# Memory-bound ones, then dots and convolutions, then others.
PROGRAMS = (
    *("gelu_10m", "fma_reduce_16m", "softmax", "reduce_row", "reduce_col", "reduce_full_10m"),
    *("transpose2d", "transpose_nhwc_nchw", "batchnorm_inf", "layer_norm_f32", "layer_norm_bf16"),
    *("blackscholes_1m", "threefry_normal_1m", "bf16_matmul_512", "int8_matmul_512"),
    *("linrelu_4096x768x3072", "attention", "attention_bf16", "conv3x3_56_64", "bert2_fwd"),
    *("nbody_2048", "sort_1m", "top_k", "cumsum_axis0", "segment_sum", "while_scalar"),
)
_EMULATED = ("gelu_1k", "linrelu_64x784x128")
# Dense TFLOP/s of data sheets, by part of the name.
_TYPES = ("bf16", "s8", "f32", "f64")
_PEAKS = {
    "A100": (312, 624, 19.5, 9.7),
    "H100 PCIe": (756, 1513, 51, 26),
    "H100": (989, 1979, 67, 34),
    "H200": (989, 1979, 67, 34),
    "B200": (2250, 4500, 80, 40),
}
_COLUMNS = ("ms", "GB/s", "% of copy", "TFLOP/s", "% of peak")
_REPEAT = 30
_NO_PROGRAM = 3  # the status


def program(name: str) -> Module | None:
    """Read a program by name; None if this tree has none of it."""
    for folder in _FOLDERS:
        for file in (folder / f"{name}.before_optimizations.txt", folder / f"{name}.hlo"):
            if file.exists():
                return hlo.parse(file.read_text("utf-8"))
    return None


def names(emulated: bool) -> list[str]:
    """Return the programs that are there, the copy first; for emulated threads small ones."""
    wanted = _EMULATED if emulated else PROGRAMS
    return ["copy", *(name for name in wanted if program(name) is not None)]


def copy_module(emulated: bool) -> Module:
    """Return the program that copies."""
    return hlo.parse(_COPY.format(size=_COPIED_EMULATED if emulated else _COPIED))


def _plan(module: Module) -> Plan:
    """Lower a program with fast numerics."""
    return lowered(module, launched(Numerics.FAST), "backend_c_fast")


def compile_all(architectures: Sequence[str], cubins: Path) -> None:
    """Compile all programs; say what cannot be."""
    compiler, cache = find_cuda_compiler(os.environ), open_cache(cubins)
    for name in names(emulated=False):
        module = program(name) or copy_module(emulated=False)
        try:
            text, _ = cuda_parts([_plan(module)])
            sizes = [len(cubin(text, one, compiler, cache)) for one in architectures]
            print(f"{name}: {', '.join(f'{size:,}' for size in sizes)} bytes", flush=True)
        except hlo.Error as error:
            print(f"{name}: {error}", flush=True)


def milliseconds(
    module: Module, device: Device, compiler: CudaCompiler, cubins: Path | None, repeat: int
) -> float:
    """Return the least time of a program with fast numerics, on arrays that lie on the GPU."""
    (made,) = on_device([(module, _plan(module))], device, compiler, cubins)
    return made.time(*from_seed(module, 0), repeat=repeat)


def row(
    number: int, device: Device, compiler: CudaCompiler, cubins: Path | None, emulated: bool
) -> dict[str, Any]:
    """Measure a program, and a copy beside it."""
    name = names(emulated)[number]
    copy = copy_module(emulated)
    module = program(name) if number else copy
    assert module is not None
    repeat = 2 if emulated else _REPEAT
    time = milliseconds(module, device, compiler, cubins, repeat)
    other = milliseconds(copy, device, compiler, cubins, repeat) if number else time
    needed, copied = work(module), work(copy)
    reached = (needed.read + needed.written) / time / 1e6
    done = needed.products / time / 1e9 if needed.products else None
    peak = _peak(device.name, needed)
    return {
        "name": name,
        "ms": time,
        "GB/s": reached,
        "% of copy": 100 * reached / (copied.read + copied.written) * other * 1e6,
        "TFLOP/s": done,
        "% of peak": 100 * done / peak if done and peak else None,
        "device": device.name,
    }


def _peak(name: str, needed: Work) -> float | None:
    """Return the peak of a GPU for the type of most operations; None where it is not known."""
    peaks = next((peaks for part, peaks in _PEAKS.items() if part in name), None)
    most = max(needed.operations, key=lambda kind: needed.operations[kind], default="")
    return peaks[_TYPES.index(most)] if peaks and most in _TYPES else None


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--number", type=int, help="of one program alone")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--cubins", type=Path, metavar="DIR")
    parser.add_argument("--emulated", action="store_true", help="on the emulated driver")
    parser.add_argument("--compile", nargs="+", metavar="SM", help="for --cubins, and no more")
    given = parser.parse_args(words)
    if given.compile:
        compile_all(given.compile, given.cubins)
        return 0
    count = len(names(given.emulated))
    numbers = range(count) if given.number is None else [given.number]
    if numbers[0] >= count:
        return _NO_PROGRAM
    device, compiler = opened(given.cubins, given.emulated)
    for number in numbers:
        found = row(number, device, compiler, given.cubins, given.emulated)
        told = [
            f"{found[column]:9.3g} {column}" for column in _COLUMNS if found[column] is not None
        ]
        print(json.dumps(found) if given.json else f"{found['name']:24} {' '.join(told)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
