"""Build and run one program on its arguments in one configuration."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from backend_c.ir.settings import GRAIN, Settings
from backend_c.lower import buffers
from backend_c.native.cache import default_directory, open_cache
from backend_c.native.libraries import compiled
from backend_c.native.marshalling import Memory, arguments, assembled
from backend_c.native.toolchain import RUNTIME, run
from backend_c.pipeline import lowered
from backend_c.projects.targets import EMITTERS, Recorded, Wanted
from backend_c.render.dialect import EMBEDDED, OPENMP
from backend_c.render.translation_units import Program, render_plan
from fuzz.compilers.configurations import Configuration, environment
from hlo.bit_equality import differences
from hlo.errors import ToolchainError
from hlo.module import Module
from hlo.types import array_leaves

HERE = Path(__file__).parent
_SECONDS = 300.0
_LINES = 12
_MARKS = ("ERROR: ", "WARNING: ", "runtime error", "error:", "driver:")


@dataclass(frozen=True, eq=False, slots=True)
class Trial:
    """Hold a program, its arguments, and the interpreter's result. Equal only to itself."""

    name: str
    module: Module
    arguments: tuple[Any, ...]
    expected: Any
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Hold the results of each run, one per number of threads; or the text of a failure."""

    values: tuple[Any, ...] = ()
    finding: str = ""


class Sources(NamedTuple):
    """Hold a program's own translation units by file name, and the paths of the others."""

    units: Mapping[str, str]
    others: tuple[str, ...] = ()


def outcome(trial: Trial, configuration: Configuration) -> Outcome:
    """Build and run a trial in a temporary directory."""
    with tempfile.TemporaryDirectory(prefix="everywhere-") as name:
        directory = Path(name)
        return ran(trial, configuration, directory, written(trial, configuration, directory))


def unequal(trial: Trial, configuration: Configuration, found: Outcome) -> str:
    """Describe how an outcome's bits differ from the interpreter's; "" if they do not."""
    for threads, value in zip(configuration.threads, found.values):
        other = differences(trial.expected, value)
        if other:
            return f"{threads} threads: {other[0]}"
    return ""


def written(trial: Trial, configuration: Configuration, directory: Path) -> Sources:
    """Write the driver's input, and all files except the C; return the C."""
    grain = GRAIN if configuration.grain is None else configuration.grain
    if configuration.target == EMBEDDED.name:
        plan = lowered(trial.module, Settings(grain=grain), configuration.pipeline)
        recorded = Recorded(trial.module, trial.arguments, trial.expected, trial.seed)
        files = EMITTERS[EMBEDDED.name](plan, recorded, Wanted())
        units = {name: text.decode() for name, text in files.items() if name.endswith(".c")}
        for name in files.keys() - units:
            (directory / name).write_bytes(files[name])
        return Sources(units)
    made, places = _rendered(trial, grain, configuration.pipeline, configuration.apart)
    entry = trial.module.entry
    given = list(arguments([(p.name, p.shape) for p in entry.parameters], trial.arguments))
    outputs = [Memory.empty(shape) for shape in array_leaves(entry.root_instruction.shape)]
    head = _Head(given, outputs, places, configuration.threads, trial.seed)
    sizes = len(made.constants), made.workspace_bytes
    (directory / "input").write_bytes(head.encoded(sizes) + made.constants)
    others = (str(HERE / name) for name in ("driver.c", *configuration.sources))
    return Sources(made.sources, tuple(others))


@lru_cache(maxsize=1)  # configurations that differ only in flags follow one another
def _rendered(
    trial: Trial, grain: int, pipeline: str, is_apart: bool
) -> tuple[Program, list[tuple[int, int]]]:
    """Lower a trial to C for the host; return it with (offset, bytes) of each buffer."""
    plan = lowered(trial.module, Settings(grain=grain), pipeline)
    workspace = buffers.allocate_apart(plan) if is_apart else buffers.allocate(plan)
    made = render_plan(plan, OPENMP, workspace)
    return made, [(offset, buffer.bytes) for buffer, offset in workspace.offsets.items()]


def ran(trial: Trial, configuration: Configuration, directory: Path, sources: Sources) -> Outcome:
    """Compile the C beside the files that :func:`written` wrote, and run it."""
    finding = _built(sources, configuration, directory)
    if finding:
        return Outcome(finding=finding)
    emulator = [configuration.emulator] if configuration.emulator else []
    if configuration.target == EMBEDDED.name:  # its main compares: the status is all there is
        status, told = _run([*emulator, "./program"], directory)
        if status:
            return Outcome(finding=told or f"result {status - 1} differs")
        return Outcome((trial.expected,))
    status, told = _run([*emulator, "./program", "input", "output"], directory)
    if status:
        return Outcome(finding=told or f"exit status {status}")
    data = (directory / "output").read_bytes()
    result = trial.module.entry.root_instruction.shape
    return Outcome(tuple(_values(data, result, len(configuration.threads))))


@dataclass(frozen=True, slots=True)
class _Head:
    """Hold the header of the driver's input; its layout is that in driver.c."""

    arguments: Sequence[Memory]
    results: Sequence[Memory]
    places: Sequence[tuple[int, int]]
    threads: Sequence[int]
    seed: int

    def encoded(self, sizes: tuple[int, int]) -> bytes:
        taken = [array for memory in self.arguments for array in memory.arrays()]
        given = [(array, memory) for memory in self.results for array in memory.arrays()]
        counts = [len(taken), len(given), len(self.places), len(self.threads), *sizes, self.seed]
        numbers = [
            *counts,
            *(array.nbytes for array in taken),
            *(array.nbytes for array, _ in given),
            # Beyond its actual sizes a bounded array may hold anything.
            *(int(array is not memory.data or memory.sizes is None) for array, memory in given),
            *(number for place in self.places for number in place),
            *self.threads,
        ]
        head = np.array(numbers, np.int64).tobytes()
        return head + b"".join(np.ascontiguousarray(array).tobytes() for array in taken)


def _values(data: bytes, result: Any, runs: int) -> list[Any]:
    """Parse the driver's output into the result of each run."""
    values, start = [], 0
    for _ in range(runs):
        outputs = [Memory.empty(shape) for shape in array_leaves(result)]
        for array in (array for memory in outputs for array in memory.arrays()):
            piece = np.frombuffer(data, array.dtype, array.size, start)
            array[...] = piece.reshape(array.shape)
            start += array.nbytes
        values.append(assembled(result, iter(outputs)))
    assert start == len(data), "the driver wrote another number of bytes"
    return values


def _built(sources: Sources, configuration: Configuration, directory: Path) -> str:
    """Compile and link; return the compiler's messages if it fails."""
    compiler, units = configuration.compiler, sources.units
    if configuration.is_sanitizer or configuration.target == EMBEDDED.name:
        for name, text in units.items():
            (directory / name).write_text(text, "utf-8")
        parts = [*units]
    else:  # as libraries are
        try:
            cache = open_cache(default_directory(os.environ))
            parts = compiled(units, compiler, cache, str(directory))
        except ToolchainError as error:
            return str(error)
    parts += sources.others
    words = [*compiler.command, *compiler.flags, f"-I{RUNTIME}", *parts, "-o", "program"]
    if not configuration.sources:
        done = run([*words, *configuration.links], str(directory))
        return "" if done.returncode == 0 else _told(done.stderr)
    # Without the compiler's own OpenMP library: linked apart.
    done = run([*words[:-2], "-c"], str(directory))
    if done.returncode:
        return _told(done.stderr)
    objects = [f"{Path(part).stem}.o" for part in parts]
    link = [flag for flag in compiler.flags if flag != "-fopenmp"]
    words = [*compiler.command, *link, *objects, *configuration.links, "-o", "program"]
    done = run(words, str(directory))
    return "" if done.returncode == 0 else _told(done.stderr)


def _run(words: Sequence[str], directory: Path) -> tuple[int, str]:
    """Run a command; return its exit status and the relevant lines of stderr. Output there without
    a failing status, as of a sanitizer, counts as status 1."""
    try:
        done = subprocess.run(
            words, cwd=directory, env=environment(), stdin=subprocess.DEVNULL, check=False,
            capture_output=True, text=True, errors="replace", timeout=_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 124, f"ran for more than {_SECONDS:.0f} s"
    told = _told(done.stderr)
    if done.returncode < 0 and not told:
        told = f"ended by signal {-done.returncode}"
    return done.returncode or int(bool(told)), told


def _told(text: str) -> str:
    """Return the relevant lines of compiler or sanitizer output: some from the first marked one."""
    lines = text.splitlines()
    first = next((n for n, line in enumerate(lines) if any(mark in line for mark in _MARKS)), 0)
    return "\n".join(lines[first : first + _LINES])
