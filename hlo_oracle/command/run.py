"""hlo run: evaluate a program and show its results.

With the interpreter (--on interp) or compiled to C (--on c): the bits are the same, but with
--numerics fast, which computes in f32 and reorders sums, as other compilers do. On several
ranks (--replicas, --partitions), what rank 3 gives is called result@3, or {0}@3.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import numpy as np

import backend_c
from hlo import archive
from hlo.module import Module
from hlo.program_file import named, read
from hlo.values import Value
from hlo_oracle import arguments, rank_runs
from hlo_oracle.rank_runs import Ranks


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE")
    arguments.add_options(parser)
    rank_runs.add_options(parser)
    parser.add_argument("--on", choices=("interp", "c"), default="interp")
    parser.add_argument("--numerics", choices=("exact", "fast"), default="exact", help="of --on c")
    parser.add_argument("--save", type=Path, metavar="OUT.npz", help="write the results here")
    parser.add_argument("--json", action="store_true", help="shapes, sums and hashes as JSON")


def main(options: argparse.Namespace) -> int:
    module = read(options.file)
    ranks = rank_runs.ranks_of(module, options)
    values = arguments.per_rank(module, options.file, options, ranks.size)
    with named(options.file):
        if options.on == "c":
            results = _compiled(module, ranks, values, options)
        else:
            results = rank_runs.interpreted(module, ranks, values, options.seed or 0)
        found = list(rank_runs.outputs_of(results))
    if options.save is not None:
        archive.write(options.save, found)
    if options.json:
        print(json.dumps([_described(name, array) for name, array in found]))
    else:
        for name, array in found:
            print(f"{name + ' ' if name else ''}{array.dtype}{list(array.shape)}")
            print(np.array2string(array, threshold=20, edgeitems=3))
    return 0


def _compiled(
    module: Module,
    ranks: Ranks,
    values: tuple[tuple[Value, ...], ...],
    options: argparse.Namespace,
) -> tuple[Value, ...]:
    rank_runs.require_for_c(module, ranks)
    executable = backend_c.compile(module, numerics=options.numerics)
    return rank_runs.compiled(executable, values, options.seed or 0)


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
