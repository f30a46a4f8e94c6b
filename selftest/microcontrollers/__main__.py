"""Run programs as emitted C99 on emulated microcontrollers, and print a table.

``python -m selftest.microcontrollers FILE…`` compares the bits that exact numerics, and programs of
integers, give on each processor with the interpreter's, and those of fast numerics on floats with
what the same C gives here. Needs ``gcc-arm-none-eabi`` and ``qemu-system-arm``, and for RISC-V
``gcc-riscv64-unknown-elf``, ``picolibc-riscv64-unknown-elf`` and ``qemu-system-misc``. Exit status
1 if a bit differs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import backend_c
import hlo
import interp
from hlo.module import Module
from hlo.types import leaves
from hlo_oracle import arguments
from selftest.microcontrollers.boards import BOARDS, WARNINGS, Board, Ran, ran
from selftest.microcontrollers.host import results_here

_HEAD = (
    *("program", "numerics", "processor", "bits", "text", "weights", "workspace", "bound"),
    *("stack", "instructions", "a MAC"),
)
_NUMERICS = ("exact", "fast")
_BEFORE = ".before_optimizations"
_OPTIMIZE = {"size": "-Os", "speed": "-O2"}


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--numerics", action="append", choices=_NUMERICS, help="default: both")
    instead = "also PROGRAM.c of this folder, if there is one, in place of the emitted module.c"
    parser.add_argument("--instead", action="append", type=Path, metavar="DIR", help=instead)
    names = [board.name for board in BOARDS]
    parser.add_argument("--board", action="append", choices=names, help="default: all")
    parser.add_argument("--optimize", choices=tuple(_OPTIMIZE), default="speed", help="-O2 or -Os")
    parser.add_argument("--max-workspace", type=int, metavar="BYTES", help="as hlo emit has it")
    options = parser.parse_args()
    boards = [board for board in BOARDS if board.name in (options.board or names)]
    missing = sorted({name for board in boards for name in board.missing})
    if missing:
        parser.error(f"not installed: {', '.join(missing)}")
    print(f"| {' | '.join(_HEAD)} |\n|{'---|' * len(_HEAD)}")
    kinds = [*(options.numerics or _NUMERICS), *(options.instead or ())]
    asked = ((file, kind) for file in options.files for kind in kinds)
    most = options.max_workspace
    differing = [_differs(*one, boards, options.optimize, most) for one in asked]
    return int(any(differing))


def _differs(
    file: Path, kind: str | Path, boards: Sequence[Board], optimize: str, most: int | None = None
) -> bool:
    """Print the rows of a program in one kind of numerics; return whether a bit differs."""
    if isinstance(kind, Path):
        return _measure_instead(file, kind, boards, optimize)
    module = hlo.parse(file.read_text("utf-8"))
    values = arguments.from_seed(module, 0)
    expected = interp.evaluate(module, *values)
    if kind == "fast" and _has_floats(module):
        expected = results_here(module, values)
    files = backend_c.emit(
        *(module, "embedded", kind, (values, expected)), optimize=optimize, max_workspace=most
    )
    manifest = json.loads(files["manifest.json"])
    differs = False
    for board in boards:
        found = _ran(board, files, optimize, WARNINGS)
        differs |= found.status != 0
        bits = "equal" if found.status == 0 else f"DIFFERENT ({found.status})"
        memory = manifest["workspace_bytes"], manifest["workspace_bound_bytes"]
        _print_row((_program(file), kind, board.name, bits), found, manifest, memory)
    return differs


def _measure_instead(file: Path, folder: Path, boards: Sequence[Board], optimize: str) -> bool:
    """Print the rows of a program for code of another generator, whose bits are not compared."""
    code = folder / f"{_program(file)}.c"
    if not code.exists():
        return False
    module = hlo.parse(file.read_text("utf-8"))
    values = arguments.from_seed(module, 0)
    given = (values, results_here(module, values))
    files = backend_c.emit(module, "embedded", "fast", given, optimize=optimize)
    manifest = json.loads(files["manifest.json"])
    files["module.c"] = code.read_bytes()
    if b"module_weights" not in files["module.c"]:  # it has its own
        files.pop("module_weights.c", None)
    for board in boards:
        found = _ran(board, files, optimize)
        head = (_program(file), folder.name, board.name, "")
        _print_row(head, found, manifest, ("", ""))
    return False


def _ran(
    board: Board, files: Mapping[str, bytes], optimize: str, warnings: Sequence[str] = ()
) -> Ran:
    with tempfile.TemporaryDirectory() as directory:
        return ran(board, files, "module", Path(directory), _OPTIMIZE[optimize], warnings)


def _has_floats(module: Module) -> bool:
    """Test whether a program has values that may be rounded."""
    shapes = (i.shape for c in module.computations for i in c.instructions)
    types = {leaf.element_type for shape in shapes for leaf in leaves(shape)}
    return any(t.is_inexact for t in types)


def _program(file: Path) -> str:
    """Return a program's name: that of its file without the suffixes of HLO."""
    return file.name.removesuffix(".txt").removesuffix(".hlo").removesuffix(_BEFORE)


def _print_row(
    head: Sequence[str], found: Ran, manifest: Mapping[str, int], memory: tuple[object, object]
) -> None:
    """Print a row: program, numerics, processor, bits; instructions and memory; workspace."""
    weights, products = manifest["weights_bytes"], manifest["multiply_accumulates"]
    each = f"{found.instructions / products:.2f}" if found.instructions and products else ""
    instructions = "more" if found.instructions is None else f"{found.instructions:,}"
    figures = (found.text - weights, weights, *memory, found.stack, instructions, each)
    print(f"| {' | '.join(map(str, (*head, *figures)))} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
