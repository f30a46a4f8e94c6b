"""Run one unit of programs on the first GPU, and say in a line of JSON what came of it.

    python -m selftest.gpu.unit PIECE NUMBER [--only N] [--cubins DIR] [--emulated]

Exit status 3 if the piece has no such unit, 69 if there is no GPU or no compiler for it. After an
error of the driver nothing more can be run in a process: ``--only`` runs one program of the unit,
compiled with the others. ``--emulated`` runs on the emulated driver, which tries all of this
without a GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from backend_c.native.cuda_driver import Device
from fuzz.compilers.packed_cubins import device_and_compiler
from fuzz.oracles.cuda import OnDevice
from fuzz.oracles.oracle import Difference, LeftOut
from hlo.errors import DeviceError, ToolchainError
from selftest.gpu.programs import PIECES, unit

NO_UNIT, NO_GPU = 3, 69  # statuses; 69: EX_UNAVAILABLE


def asked(piece: str, number: int, only: int | None, oracle: OnDevice) -> dict[str, Any]:
    """Run a unit; return counts, and the faults."""
    named = unit(piece, number) or []
    start = time.perf_counter()
    wanted = range(len(named)) if only is None else [only]
    outcomes = oracle.some([case for _, case in named], wanted)
    row: dict[str, Any] = {
        "piece": piece, "unit": number, "programs": len(wanted), "left out": 0, "other bits": 0,
        "errors": 0, "wrong": [], "lost": -1, "where": where(oracle.device),
    }  # fmt: skip
    for place, outcome in zip(wanted, outcomes, strict=True):
        name = named[place][0]
        # A program whose constants were left out of the text has no value.
        if isinstance(outcome, LeftOut) or (outcome and outcome.kind == "ArgumentError"):
            row["left out"] += 1
        elif isinstance(outcome, Difference):
            is_error = outcome.kind in ("DeviceError", "DriverError")
            row["errors" if is_error else "other bits"] += 1
            row["wrong"].append(f"{name}: {outcome.kind}: {outcome.detail}")
            if is_error and row["lost"] < 0:
                row["lost"] = place
    row["seconds"] = round(time.perf_counter() - start, 2)
    return row


def where(device: Device) -> str:
    """Describe the GPU and its driver."""
    return f"{device.name} ({device.architecture}), driver of CUDA {device.driver.version}"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m selftest.gpu.unit",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("piece", choices=PIECES)
    parser.add_argument("number", type=int)
    parser.add_argument("--only", type=int, metavar="N")
    parser.add_argument("--cubins", type=Path, metavar="DIR")
    parser.add_argument("--emulated", action="store_true")
    given = parser.parse_args(words)
    if unit(given.piece, given.number) is None:
        return NO_UNIT
    try:
        device, compiler = device_and_compiler(given.cubins, given.emulated)
    except (DeviceError, ToolchainError) as error:
        print(error, file=sys.stderr)
        return NO_GPU
    oracle = OnDevice(device, compiler, given.cubins)
    print(json.dumps(asked(given.piece, given.number, given.only, oracle)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
