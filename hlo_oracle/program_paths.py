"""Find the program files that a command is given."""

from __future__ import annotations

import argparse
from pathlib import Path

import bisect_dump
from hlo.errors import Error
from hlo_oracle import option_types

# Files of a recorded call; the facts are written last.
RECORDED_PROGRAM, RECORDED_ARGUMENTS = "program.hlo.gz", "arguments.npz"
RECORDED_RESULTS, RECORDED_FACTS = "results.npz", "facts.json"

# And compressed: .hlo.gz. StableHLO has no one name for its bytecode.
_SUFFIXES = (".hlo", ".txt", ".mlir", ".mlirbc", ".stablehlo", ".pb")
KNOWN = f"{', '.join(f'*{suffix}' for suffix in _SUFFIXES[:-1])} or *{_SUFFIXES[-1]}"


def add_paths(
    parser: argparse.ArgumentParser,
    metavar: str = "FILE|DIR",
    what: str = "programs, directories of them, or dumps of XLA",
) -> None:
    """Add the positional arguments of a command that takes many programs."""
    parser.add_argument("paths", type=option_types.path, nargs="+", metavar=metavar, help=what)


def is_program(path: Path) -> bool:
    """Test whether a file in a directory is a program, by its suffix; XLA's reports are none."""
    return path.name.removesuffix(".gz").endswith(_SUFFIXES) and not bisect_dump.is_report(path)


def programs_in(directory: Path) -> list[Path]:
    """List the program files in a directory, sorted; of a SavedModel of TensorFlow the one that
    tells what it is."""
    saved = directory / "saved_model.pb"
    if saved.is_file():
        return [saved]
    return sorted(path for path in directory.iterdir() if is_program(path) and path.is_file())


def beside(path: Path, ending: str) -> Path:
    """Return the path of what is written of a program by default; of standard input (``-``) in the
    current directory."""
    return path.with_name(("stdin" if str(path) == "-" else path.name) + ending)


def program_name(path: Path) -> str:
    """Return a program's name in a recipe file: its file name up to the first dot."""
    return path.name.split(".", 1)[0]


def program_files(paths: list[Path]) -> list[Path]:
    """List the given files, and all program files in the given directories, sorted."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            recorded = path.glob(f"*/{RECORDED_FACTS}")
            inside = programs_in(path)
            inside += sorted(facts.with_name(RECORDED_PROGRAM) for facts in recorded)
            if not inside:
                raise Error(f"{path}: no {KNOWN} in this directory")
            found.extend(inside)
        else:
            found.append(path)
    return found
