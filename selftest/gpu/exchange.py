"""Exchange arrays on a GPU with CuPy, PyTorch and JAX, as far as they are installed.

    python -m selftest.gpu.exchange [--cubins DIR]

Each library's arrays of each element type that it has go into a compiled program where they are,
and the results are read by the library: their bits must be the interpreter's. A line of JSON says
what came of it, as :mod:`selftest.gpu.unit` does.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import hlo
import interp
from backend_c.ir.settings import Numerics, launched
from backend_c.native.cuda_executable import CudaExecutable
from backend_c.pipeline import lowered, on_device
from fuzz.compilers.packed_cubins import device_and_compiler
from hlo.bit_equality import differences
from hlo.errors import DeviceError, ToolchainError
from hlo.module import Module
from hlo.types import ELEMENT_TYPES
from hlo.values import Array
from hlo_oracle.arguments import from_seed
from selftest.gpu.unit import NO_GPU, where

PIECE = "exchange"
_TYPES = ("pred", "s8", "u8", "s16", "s32", "s64", "f16", "bf16", "f32", "f64", "c64", "c128")
_SHAPES = ((), (0, 3), (5, 7), (1, 1000, 3))
_TEXT = """HloModule exchange
ENTRY e {{ x = {0} parameter(0)
          y = {0} parameter(1)
          ROOT both = ({0}, {0}) tuple({0} {1}(x, y), {0} copy(x)) }}"""


def _to_torch(array: Array) -> Any:
    torch: Any = import_module("torch")
    if array.dtype == ELEMENT_TYPES["bf16"].numpy:
        return torch.from_numpy(array.view(np.int16).copy()).cuda().view(torch.bfloat16)
    return torch.from_numpy(array.copy()).cuda()


def _from_torch(array: Any) -> Array:
    torch: Any = import_module("torch")
    tensor = torch.from_dlpack(array)
    if tensor.dtype == torch.bfloat16:
        found: Array = tensor.view(torch.int16).cpu().numpy().view(ELEMENT_TYPES["bf16"].numpy)
        return found
    other: Array = tensor.cpu().numpy()
    return other


def _to_jax(array: Array) -> Any:
    jax: Any = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    return jax.device_put(array)


def _from_jax(array: Any) -> Array:
    return np.asarray(import_module("jax").numpy.from_dlpack(array))


def _to_cupy(array: Array) -> Any:
    return import_module("cupy").asarray(array)


def _from_cupy(array: Any) -> Array:
    cupy: Any = import_module("cupy")
    found: Array = cupy.asnumpy(cupy.asarray(array))
    return found


# To a library's array on the GPU, and from ours by what the library reads.
LIBRARIES: dict[str, tuple[Callable[[Array], Any], Callable[[Any], Array]]] = {
    "torch": (_to_torch, _from_torch),
    "jax": (_to_jax, _from_jax),
    "cupy": (_to_cupy, _from_cupy),
}
_LACKS = {"cupy": ("bf16",)}


def _programs() -> Iterator[tuple[str, str, Module]]:
    """Yield the element type, a name and the module of each program."""
    for element_type in _TYPES:
        op = "or" if element_type == "pred" else "add"
        for dims in _SHAPES:
            shape = f"{element_type}[{','.join(map(str, dims))}]"
            yield element_type, shape, hlo.parse(_TEXT.format(shape, op))


def asked(library: str, made: Sequence[tuple[str, str, Module, CudaExecutable]]) -> list[str]:
    """Exchange arrays with a library; return the faults."""
    given_to, read_by = LIBRARIES[library]
    wrong = []
    for element_type, shape, module, program in made:
        if element_type in _LACKS.get(library, ()):
            continue
        arrays = from_seed(module, 0)
        expected = interp.evaluate(module, *arrays)
        try:
            found = program.on_device(*[given_to(np.asarray(array)) for array in arrays])
            read = tuple(read_by(one) for one in found)
        except Exception as error:  # of any library
            wrong.append(f"{library}, {shape}: {type(error).__name__}: {error}")
            continue
        if other := differences(expected, read):
            wrong.append(f"{library}, {shape}: {other[0]}")
    return wrong


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m selftest.gpu.exchange",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--cubins", type=Path, metavar="DIR")
    parser.add_argument("--emulated", action="store_true", help="on the emulated driver")
    given = parser.parse_args(words)
    try:
        device, compiler = device_and_compiler(given.cubins, given.emulated)
    except (DeviceError, ToolchainError) as error:
        print(error, file=sys.stderr)
        return NO_GPU
    start, named = time.perf_counter(), list(_programs())
    planned = [(module, lowered(module, launched(Numerics.EXACT))) for _, _, module in named]
    programs = on_device(planned, device, compiler, given.cubins)
    made = [(*one, program) for one, program in zip(named, programs, strict=True)]
    there = [] if given.emulated else [name for name in LIBRARIES if find_spec(name)]
    wrong = [one for name in there for one in asked(name, made)]
    row = {
        "piece": PIECE, "unit": 0, "programs": len(made) * len(there), "left out": 0,
        "other bits": 0, "errors": len(wrong), "wrong": wrong, "lost": -1,
        "where": where(device),
        "seconds": round(time.perf_counter() - start, 2), "libraries": there,
    }  # fmt: skip
    print(json.dumps(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
