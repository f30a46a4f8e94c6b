"""Find a C compiler and the flags that it takes, and run it.

cache = open_cache(default_directory(os.environ))
compiler = known_compiler(os.environ, cache)
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache as once
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from backend_c.native.cache import (
    Cache,
    remembered,
    stamp,
)
from hlo.errors import ToolchainError

T = TypeVar("T")

RUNTIME = Path(__file__).parents[1] / "runtime"

# numerics.md: nothing that changes a result. -fno-trapping-math and -fno-math-errno let selects
# and square roots become vector instructions; -fwrapv and -fno-strict-aliasing define the rest.
_SEMANTICS = (
    "-fno-trapping-math",
    "-fno-math-errno",
    "-ffp-contract=off",
    "-fwrapv",
    "-fno-strict-aliasing",
)
_FLAGS = (
    "-std=gnu11",
    "-O3",
    *_SEMANTICS,
    "-fPIC",
    "-Wall",
    "-Wextra",
    "-Werror",
)
# Without -fno-tree-pre gcc makes branches of selects in the elementary functions: 8 times slower.
# -fno-tree-sink: gcc 12 moves loads to the one side of a select that needs them, which makes masked
# loads of them, of which it gets neighbouring ones wrong (backend_c/render/eager_loads.py).
# -fno-tree-slp-vectorize: gcc 12 drops the rounding of (double)(float)x when it makes vectors of
# straight code with complex products; loops are vectorised without it, at the same speed.
# -fno-loop-unroll-and-jam: gcc 12 unrolls loops that pack 16 rows of a factor so far that one takes
# it 14 s (tests/regressions/packed_rows_of_bf16.hlo), 0.1 s without; other loops stay as they are.
# -fno-thread-jumps: gcc 12 makes a branch of several selects by one condition, so that their loop
# has no vectors: edges of an image took nine times as long.
_WITHHELD = (
    "-fno-tree-pre",
    "-fno-tree-sink",
    "-fno-thread-jumps",
    "-fno-tree-slp-vectorize",
    "-fno-loop-unroll-and-jam",
)
# What whoever compiles generated C elsewhere needs, as far as the compiler takes it.
PORTABLE_FLAGS = (*_SEMANTICS, *_WITHHELD)
# -Wno-bool-compare and the like: a program may say what is always true. The headers disable these
# warnings, too, but headers that were compiled before lose that.
# -Wno-pass-failed: clang warns of loops after `omp simd` that it did not make vectors of.
_OPTIONAL_FLAGS = (
    "-march=native",
    "-mprefer-vector-width=512",
    "-fopenmp",
    *_WITHHELD,
    "-Wno-pass-failed",
    "-Wno-bool-compare",
    "-Wno-tautological-compare",
    "-Wno-type-limits",
)
# What a user says in HLO_CC of processor and optimisation stands: of our flags these give way.
_GIVING_WAY = {
    "-march=native": ("-march=", "-mcpu="),
    "-mprefer-vector-width=512": ("-mprefer-vector-width=",),
    "-O3": ("-O",),
}
_CANDIDATES = ("gcc", "clang", "cc")
_GCC = "Free Software Foundation"  # in its version's text, whatever its name is
_ENVIRONMENT = ("COMPILER_PATH", "GCC_EXEC_PREFIX")  # where gcc finds the programs that it starts
WORKERS = min(8, os.cpu_count() or 1)
_ERROR_LINES = 8
_ERROR, _OF_A_WARNING = "error: ", "[-Werror"
_SUMMARY = re.compile("warnings being treated as errors|errors? generated")  # gcc's, clang's


@dataclass(frozen=True, slots=True)
class Compiler:
    """Describe a command that compiles C: its first words, its version's text, and all flags.

    ``instead`` says in a line why those are not the flags as shipped (:mod:`backend_c.probe`).
    """

    command: tuple[str, ...]
    version: str
    flags: tuple[str, ...]
    instead: str = ""


def identity(compiler: Compiler) -> list[str]:
    """Return the texts that decide what a compiler makes of a source: its command, version and
    flags, and the processor, for -march=native."""
    return [*compiler.command, compiler.version, *compiler.flags, processor()]


def is_gcc(compiler: Compiler) -> bool:
    """Test for gcc, by whatever name it is called."""
    return _GCC in compiler.version


def find_compiler(environ: Mapping[str, str]) -> Compiler:
    """Return the compiler in ``HLO_CC`` (arguments allowed) if that is set, else gcc, clang or cc.

    Raises ToolchainError if there is none.
    """
    chosen = environ.get("HLO_CC", "").strip()
    commands = [_words(chosen)] if chosen else [[name] for name in _CANDIDATES]
    for command in commands:
        path = shutil.which(command[0], path=environ.get("PATH"))
        if path is None:
            continue
        version = run([path, *command[1:], "--version"])
        if version.returncode == 0:
            return Compiler((path, *command[1:]), version.stdout, _accepted((path, *command[1:])))
    if chosen:
        raise ToolchainError(f"HLO_CC={chosen} is no compiler that runs: unset it or correct it")
    raise ToolchainError(
        "no C compiler found (looked for gcc, clang, cc): install one (Debian: apt install gcc;"
        " Fedora: dnf install gcc; macOS: xcode-select --install) or name it in HLO_CC"
    )


def known_compiler(environ: Mapping[str, str], cache: Cache) -> Compiler:
    """Return :func:`find_compiler`'s answer, from the cache if nothing it depends on has changed.

    The answer is kept under what it depends on: ``HLO_CC``, ``PATH``, the flags that are tried, the
    processor, and the stamps of all files that the command may start: each word of it, and every
    gcc, clang and cc on the path, as one that is a link to ccache or a script starts another.
    """
    path = environ.get("PATH", os.defpath)
    chosen = environ.get("HLO_CC", "").strip()
    started = [shutil.which(word, path=path) or word for word in (_words(chosen) if chosen else [])]
    for place in path.split(os.pathsep):
        started += [os.path.join(place, name) for name in _CANDIDATES]
    asked = ["compiler", chosen, path, *(environ.get(name, "") for name in _ENVIRONMENT)]
    asked += [*_FLAGS, *_OPTIONAL_FLAGS, processor(), *map(_stamped, started)]
    kept = remembered(cache, digest(asked), lambda: json.dumps(_parts(find_compiler(environ))))
    command, version, flags = json.loads(kept)
    return Compiler(tuple(command), version, tuple(flags))


def _parts(compiler: Compiler) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """Return the fields of a compiler that are cached."""
    return compiler.command, compiler.version, compiler.flags


def _stamped(path: str) -> str:
    """Return the stamp of a file; empty if there is none."""
    try:
        return stamp(path)
    except OSError:
        return ""


def _words(command: str) -> list[str]:
    """Split a command line."""
    try:
        return shlex.split(command)
    except ValueError as error:
        raise ToolchainError(f"HLO_CC={command} cannot be read: {error}") from None


def _accepted(command: Sequence[str]) -> tuple[str, ...]:
    """Return the flags that a compiler accepts; all are tried together first, as most take all."""
    flags, wanted = _not_said(command, _FLAGS), _not_said(command, _OPTIONAL_FLAGS)
    if takes(command, wanted):
        return (*flags, *wanted)
    some = tuple(flag for flag in wanted if takes(command, [flag]))
    return (*flags, *some) if takes(command, some) else flags


def _not_said(command: Sequence[str], flags: Sequence[str]) -> tuple[str, ...]:
    """Leave out the flags that the command overrides by others of its own."""
    return tuple(
        flag
        for flag in flags
        if not any(word.startswith(_GIVING_WAY.get(flag, ())) for word in command[1:])
    )


def takes(command: Sequence[str], flags: Sequence[str]) -> bool:
    """Return whether a compiler knows all these flags."""
    probe = ["-Werror", "-fsyntax-only", "-x", "c", os.devnull]
    return run([*command, *flags, *probe]).returncode == 0


def links(command: Sequence[str], flags: Sequence[str]) -> bool:
    """Return whether a compiler links a library with these flags.

    clang accepts ``-fopenmp`` also where the library that it needs is not installed.
    """
    with tempfile.TemporaryDirectory() as directory:
        library = ["-shared", "-x", "c", os.devnull, "-o", os.path.join(directory, "library.so")]
        return run([*command, *flags, *library]).returncode == 0


def run(words: Sequence[str], directory: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a process to its end; a command that cannot start counts as one that failed."""
    try:
        return subprocess.run(
            words, capture_output=True, text=True, errors="replace", check=False,
            cwd=directory, env=_environ(), stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except OSError as error:
        return subprocess.CompletedProcess(words, 127, "", f"error: {words[0]}: {error.strerror}")


def _environ() -> dict[str, str]:
    """Return the environment of a compiler: its messages are English, as `error:` is looked for."""
    return {**os.environ, "LC_ALL": "C"}


class Compiling:
    """A compiler that compiles one translation unit in a directory, which was :func:`written`,
    while this process goes on; its messages go to a file there."""

    def __init__(self, unit: str, compiler: Compiler, directory: str) -> None:
        self._compiler, self._words = compiler, _words_for(unit, compiler)
        self.made = Path(directory) / _object_name(unit)
        self._told = self.made.with_suffix(".messages")
        try:
            with self._told.open("wb") as told:
                self._process = subprocess.Popen(
                    self._words, stdout=told, stderr=subprocess.STDOUT,
                    cwd=directory, env=_environ(), stdin=subprocess.DEVNULL,
                )  # fmt: skip
        except OSError as error:
            raise ToolchainError(f"{self._words[0]} does not start: {error.strerror}") from None

    @property
    def is_running(self) -> bool:
        """Return whether the process has not ended."""
        return self._process.poll() is None

    def end(self) -> Path:
        """Wait for the object; return its path. Raises ToolchainError if there is none."""
        status = self._process.wait()
        told = self._told.read_text("utf-8", errors="replace")
        require(subprocess.CompletedProcess(self._words, status, "", told), self._compiler)
        return self.made

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


def objects(sources: Mapping[str, str], compiler: Compiler, directory: str) -> list[str]:
    """Compile translation units in a directory, in parallel; return the names of the objects."""
    units = written(sources, directory)
    with workers() as mapped:
        return list(mapped(lambda unit: _compile(unit, compiler, directory), units))


@contextmanager
def workers() -> Iterator[Callable[[Callable[[T], str], Iterable[T]], Iterator[str]]]:
    """Yield a ``map`` whose calls run in threads. In functions of atexit, where Python starts no
    more threads, it is Python's own, which calls one after the other."""
    if threading.main_thread().is_alive():
        with ThreadPoolExecutor(WORKERS) as pool:
            yield pool.map
    else:
        yield map


def build_in(directory: str, sources: Mapping[str, str], compiler: Compiler) -> Path:
    """Compile a library into a directory by one command, without a cache."""
    words = [*compiler.command, *compiler.flags, f"-I{RUNTIME}", "-shared", "-o", "library.so"]
    require(run([*words, *written(sources, directory)], directory), compiler)
    return Path(directory) / "library.so"


def written(sources: Mapping[str, str], directory: str) -> list[str]:
    """Write the sources; return the names of the translation units."""
    try:
        for name, text in sources.items():
            (Path(directory) / name).write_text(text, "utf-8")
    except OSError as error:
        raise ToolchainError(f"cannot write to {directory}: {error.strerror}") from None
    return [name for name in sources if name.endswith(".c")]


def _compile(unit: str, compiler: Compiler, directory: str) -> str:
    """Compile one translation unit; return the name of the object file."""
    require(run(_words_for(unit, compiler), directory), compiler)
    return _object_name(unit)


def _words_for(unit: str, compiler: Compiler) -> list[str]:
    """Return the command that compiles one translation unit."""
    # -pipe: the assembler runs beside the compiler, 5 ms of 120.
    words = [*compiler.command, *compiler.flags, "-pipe", f"-I{RUNTIME}", "-c"]
    return [*words, unit, "-o", _object_name(unit)]


def _object_name(unit: str) -> str:
    return unit.removesuffix(".c") + ".o"


def require(process: subprocess.CompletedProcess[str], compiler: Compiler) -> None:
    """Raise ToolchainError if a process failed: RefusedForWarnings if warnings were errors to it,
    and it had no other."""
    if process.returncode == 0:
        return
    lines = (process.stderr or process.stdout).splitlines()
    errors = [line for line in lines if "error" in line] or lines
    told = "\n".join(errors[:_ERROR_LINES]) or f"exit status {process.returncode}"
    found = [line for line in lines if _ERROR in line and not _SUMMARY.search(line)]
    by_warnings = bool(found) and all(_OF_A_WARNING in line for line in found)
    kind = RefusedForWarnings if by_warnings else ToolchainError
    raise kind(f"{compiler.command[0]} failed:\n{told}")


class RefusedForWarnings(ToolchainError):
    """The C compiler takes a source but for warnings, which count as errors."""


def without_warnings(compiler: Compiler) -> Compiler:
    """Return a compiler that does not warn."""
    kept = (flag for flag in compiler.flags if flag != "-Werror")
    return replace(compiler, flags=(*kept, "-w"))


def digest(parts: Sequence[str]) -> str:
    """Hash texts, each with its length."""
    found = hashlib.sha256()
    for part in parts:
        data = part.encode()
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()[:40]


def headers() -> str:
    """Hash the runtime headers as they are now."""
    return _headers(tuple(map(stamp, sorted(RUNTIME.glob("*.h")))))


@lru_cache(1)
def _headers(_stamps: tuple[str, ...]) -> str:
    """Hash the runtime headers; read again when a stamp has changed."""
    files = sorted(RUNTIME.glob("*.h"))
    return digest([part for file in files for part in (file.name, file.read_text("utf-8"))])


@once
def processor() -> str:
    """Return a text that ``-march=native`` depends on: the processor's model and features."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", errors="replace")
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    wanted = ("model name", "flags", "Features", "CPU part", "isa")
    lines = [line for line in text.split("\n\n", 1)[0].splitlines() if line.startswith(wanted)]
    return "\n".join([platform.machine(), *lines])
