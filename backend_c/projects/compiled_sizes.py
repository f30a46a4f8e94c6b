"""Compile an emitted project to measure its size: bytes of code, and of stack."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from backend_c.native.toolchain import Compiler, require, run
from backend_c.projects.call_graph import call_graph, stack_depths
from backend_c.projects.elf_sections import read_only_bytes
from hlo.errors import ToolchainError

_GRAPH = "-fcallgraph-info=su"


class CompiledSizes(NamedTuple):
    """Hold the sizes of a compiled project.

    ``compiler`` is the first line of its version, ``command`` what it was given for each file.
    ``flash`` is bytes of code and constants by file; ``stack`` the most bytes that each function
    and those that it calls hold at once, without ``library_functions``: gcc tells no frames of
    functions of the C library and of its own, as soft floats.
    """

    compiler: str
    command: tuple[str, ...]
    flash: Mapping[str, int]
    stack: Mapping[str, int]
    library_functions: tuple[str, ...]


def compiled_sizes(command: str, files: Mapping[str, bytes], flags: Sequence[str]) -> CompiledSizes:
    """Compile the C files of a project in a temporary directory, and measure them.

    ``command`` is a cross compiler with what chooses the processor, split as a shell does; its
    flags stand where ``flags`` say otherwise. Raises ToolchainError if it does not compile them, or
    is none that writes call graphs and ELF: gcc 10 does.
    """
    words = _words(command)
    told = run([words[0], "--version"])
    if told.returncode != 0 or shutil.which(words[0]) is None:
        raise ToolchainError(f"{words[0]} is no compiler that runs: install it, or name another")
    first = told.stdout.partition("\n")[0]
    given = (words[0], *flags, *words[1:])
    flash: dict[str, int] = {}
    graphs: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        _require_call_graphs(given, name)
        directory = Path(name)
        for file, content in files.items():
            (directory / file).write_bytes(content)
        for file in (file for file in files if file.endswith(".c")):
            made = file.removesuffix(".c") + ".o"
            done = run([*given, _GRAPH, "-c", file, "-o", made], name)
            require(done, Compiler(given, first, ()))
            flash[file] = read_only_bytes((directory / made).read_bytes())
            graphs.append((directory / file).with_suffix(".ci").read_text("utf-8"))
    graph = call_graph(graphs)
    return CompiledSizes(first, given, flash, stack_depths(graph), graph.library_functions())


def _words(command: str) -> list[str]:
    """Split a command line."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ToolchainError(f"the compiler {command!r} cannot be read: {error}") from None
    if not words:
        raise ToolchainError("the compiler is empty: name one, as arm-none-eabi-gcc")
    return words


def _require_call_graphs(command: Sequence[str], directory: str) -> None:
    """Raise ToolchainError if a compiler does not know the flag; it writes to the directory."""
    probe = [*command, "-fsyntax-only", "-x", "c", os.devnull]
    if run(probe, directory).returncode == 0 and run([*probe, _GRAPH], directory).returncode != 0:
        raise ToolchainError(f"{command[0]} does not know {_GRAPH}: stack is measured by gcc 10")
