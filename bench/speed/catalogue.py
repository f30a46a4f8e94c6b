"""Find the programs to measure, and the sources of their arguments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hlo.errors import Error
from hlo.io_errors import told
from hlo.module import Module
from hlo.values import Value
from hlo_oracle import arguments
from hlo_oracle.program_paths import program_files, program_name

ROOT = Path(__file__).parents[2]
DEFAULT = (
    ROOT / "tests" / "corpus" / "jax",
    ROOT / "tests" / "corpus" / "tensorflow",
    ROOT / "bench" / "programs",
)
_BEFORE = "before_optimizations"


@dataclass(frozen=True, slots=True)
class Program:
    """A program to measure. ``recipe`` is the file with its recipe of arguments; without one,
    arguments are drawn from ``seed`` by their shapes."""

    name: str
    path: str
    recipe: str | None = None
    seed: int = 0
    cast: bool = False

    @property
    def args(self) -> None:
        """None: no program has its arguments in an archive."""


def found(paths: Sequence[Path]) -> list[Program]:
    """List the programs in files and directories, by default the corpus and ``bench/programs``. Of
    several texts of one program in a directory it is the one before optimisations."""
    files = [file for path in paths or DEFAULT for file in _files(path)]
    names = [program_name(file) for file in files]
    return [
        Program(_label(file, names.count(name) > 1), str(file), _recipe(file))
        for file, name in zip(files, names, strict=True)
    ]


def _files(path: Path) -> Iterable[Path]:
    try:
        path.stat()
    except OSError as error:
        raise Error(told(error)) from error
    inside = program_files([path])
    if not path.is_dir():
        return inside
    before = {program_name(file) for file in inside if _BEFORE in file.name}
    return [file for file in inside if _BEFORE in file.name or program_name(file) not in before]


def _label(file: Path, is_ambiguous: bool) -> str:
    return f"{file.parent.name}/{file.name}" if is_ambiguous else program_name(file)


def _recipe(file: Path) -> str | None:
    beside = file.parent / "arguments.json"
    if not beside.is_file():
        return None
    return str(beside) if program_name(file) in json.loads(beside.read_text()) else None


def values(program: Program, module: Module) -> tuple[Value, ...]:
    """Provide the arguments of a program."""
    return arguments.given(module, Path(program.path), program)
