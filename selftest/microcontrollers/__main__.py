"""Run programs as emitted C99 on emulated microcontrollers, and print a table.

``python -m selftest.microcontrollers FILE…`` compares the bits that exact numerics give on each
processor with the interpreter's, and those of fast numerics with what the same C gives here. Needs
``gcc-arm-none-eabi`` and ``qemu-system-arm``. Exit status 1 if a bit differs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import backend_c
import hlo
import interp
from hlo_oracle import arguments
from selftest.microcontrollers.boards import BOARDS, ran
from selftest.microcontrollers.host import results_here

_HEAD = ("program", "numerics", "processor", "bits", "text", "weights", "workspace", "stack")


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    options = parser.parse_args()
    missing = sorted({name for board in BOARDS for name in board.missing})
    if missing:
        parser.error(f"not installed: {', '.join(missing)}")
    print(f"| {' | '.join((*_HEAD, 'instructions'))} |\n|{'---|' * (len(_HEAD) + 1)}")
    differing = [file for file in options.files if _differs(file)]
    return int(bool(differing))


def _differs(file: Path) -> bool:
    """Print the rows of a program; return whether a bit differs."""
    module = hlo.parse(file.read_text("utf-8"))
    values = arguments.from_seed(module, 0)
    differs = False
    for numerics in ("exact", "fast"):
        expected = interp.evaluate(module, *values)
        if numerics == "fast":
            expected = results_here(module, values)
        files = backend_c.emit(module, "embedded", numerics, (values, expected))
        manifest = json.loads(files["manifest.json"])
        weights, workspace = manifest["weights_bytes"], manifest["workspace_bytes"]
        for board in BOARDS:
            with tempfile.TemporaryDirectory() as directory:
                found = ran(board, files, "module", Path(directory))
            bits = "equal" if found.status == 0 else f"DIFFERENT ({found.status})"
            differs |= found.status != 0
            name = file.name.split(".")[0]
            row = (name, numerics, board.name, bits, found.text - weights, weights, workspace)
            count = "more" if found.instructions is None else f"{found.instructions:,}"
            print(f"| {' | '.join(map(str, (*row, found.stack, count)))} |", flush=True)
    return differs


if __name__ == "__main__":
    sys.exit(main())
