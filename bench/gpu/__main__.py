"""Measure programs on the first GPU, ours and other compilers'.

    python -m bench.gpu [--peer xla|eager|inductor] [PROGRAM …] [--json] [--emulated]
    python -m bench.gpu --unit N --json         ten programs, as selftest.gpu.check asks for them
    python -m bench.gpu [PROGRAM …] --compile SM … --cubins DIR

Each is queued again and again on arrays that lie on the GPU, with fast numerics; the time of a run
is the least of twelve batches (:mod:`bench.gpu.clock`). A program that was compiled before is taken
from ``--cubins``; ``--compile`` makes those of all programs for some architectures, which needs no
GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import hlo
from bench.gpu import ours, programs
from bench.gpu.peers import PEERS
from fuzz.compilers.packed_cubins import device_and_compiler

_COLUMNS = ("ms", "GB/s", "% of copy", "TFLOP/s", "% of peak")
_NO_UNIT = 3  # the status


def _row(name: str, measure: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """Measure a program; on an error the row has its message."""
    try:
        return measure(name)
    except (hlo.Error, RuntimeError, ValueError, TypeError, AttributeError, KeyError) as error:
        line = (str(error).splitlines() or [type(error).__name__])[0]
        return {"name": name, "error": line[:200]}


def _told(row: dict[str, Any]) -> str:
    """Format the line of a program."""
    if "error" in row:
        return f"{row['name']:24} {row['error']}"
    columns = *_COLUMNS, *PEERS
    numbers = [f"{row[c]:9.3g} {c}" for c in columns if row.get(c) is not None]
    kernels = [f"\n    {ms:9.4f} ms {count:4} x {kernel} %{instruction}"
               for kernel, instruction, count, ms in row.get("kernels", ())]  # fmt: skip
    return f"{row['name']:24} {' '.join(numbers)}{''.join(kernels)}"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--peer", choices=PEERS, help="measure another compiler")
    parser.add_argument("--unit", type=int, metavar="N")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--cubins", type=Path, metavar="DIR")
    parser.add_argument("--emulated", action="store_true", help="on the emulated driver")
    parser.add_argument("--compile", nargs="+", metavar="SM", help="for --cubins, and no more")
    given = parser.parse_args(words)
    wanted = given.programs or programs.names(given.emulated)
    if given.unit is not None:
        wanted = programs.unit(given.unit, given.emulated)
    if given.compile:
        for line in ours.compile_all(wanted, given.compile, given.cubins):
            print(line, flush=True)
        return 0
    if not wanted:
        return _NO_UNIT
    if given.peer:
        peer = PEERS[given.peer]

        def measure(name: str) -> dict[str, Any]:
            return {"name": name, given.peer: peer(name)}
    else:
        measure = ours.Ours(
            *device_and_compiler(given.cubins, given.emulated), given.cubins, given.emulated
        ).row
    for name in wanted:
        row = _row(name, measure)
        print(json.dumps(row) if given.json else _told(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
