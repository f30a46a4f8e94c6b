"""hlo run: evaluate a program and show its results.

With the interpreter (--on interp) or compiled to C (--on c): the bits are the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import numpy as np

import backend_c
import interp
from hlo.module import Module
from hlo_tools import archive, arguments
from hlo_tools.source import named, read
from hlo_tools.verdict import Value, outputs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE")
    arguments.add_options(parser)
    parser.add_argument("--on", choices=("interp", "c"), default="interp")
    parser.add_argument("--save", type=Path, metavar="OUT.npz", help="write the results here")
    parser.add_argument("--json", action="store_true", help="shapes, sums and hashes as JSON")


def main(options: argparse.Namespace) -> int:
    module = read(options.file)
    values = arguments.given(module, options.file, options)
    with named(options.file):
        found = list(outputs(_ON[options.on](module, values, options.seed or 0)))
    if options.save is not None:
        archive.write(options.save, found)
    if options.json:
        print(json.dumps([_described(name, array) for name, array in found]))
    else:
        for name, array in found:
            print(f"{name + ' ' if name else ''}{array.dtype}{list(array.shape)}")
            print(np.array2string(array, threshold=20, edgeitems=3))
    return 0


def _interpreted(module: Module, values: tuple[Value, ...], seed: int) -> Value:
    result: Value = interp.evaluate(module, *values, seed=seed)
    return result


def _compiled(module: Module, values: tuple[Value, ...], seed: int) -> Value:
    executable = backend_c.compile(module, numerics="exact")
    result: Value = executable(*values, seed=seed)
    return result


_ON = {"interp": _interpreted, "c": _compiled}


def _described(name: str, array: np.ndarray) -> dict[str, object]:
    described: dict[str, object] = {
        "output": name,
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "sha256": hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest(),
    }
    if array.dtype.kind != "c":
        wide = array.astype(np.float64)
        for key, total in (("sum", wide.sum()), ("abs_sum", np.abs(wide).sum())):
            described[key] = float(total) if np.isfinite(total) else str(total)
    return described
