"""Keep what calls of a compiled program need, by the module it was compiled from.

A module that was compiled before is not verified, lowered and rendered again: its text, the
settings, the compiler and the generator (:mod:`backend_c.native.generator_digest`) decide the rest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import hlo
from backend_c.ir.settings import Settings
from backend_c.native.cache import PROGRAM, Cache, found, publish, workspace
from backend_c.native.early_objects import EarlyObjects
from backend_c.native.executable import CallableProgram
from backend_c.native.generator_digest import generator_digest, is_as_loaded
from backend_c.native.libraries import build
from backend_c.native.toolchain import Compiler, digest, identity
from backend_c.render.translation_units import Program
from hlo.errors import ToolchainError
from hlo.literal import Literal
from hlo.module import Instruction, Module
from hlo.values import Array

_MOST = 64 << 20  # bytes of constants in a kept program: more would drive out many libraries


@dataclass(frozen=True, slots=True)
class KeptProgram:
    """Hold what calls of a kept program need; its ``sources`` are rendered when they are read."""

    constants: bytes
    workspace_bytes: int
    is_parallel: bool
    sources: Mapping[str, str]
    number: None = None  # the library has this one program


class LateSources(Mapping[str, str]):
    """Hold translation units by file name, rendered when the first one is asked for."""

    def __init__(self, render: Callable[[], Mapping[str, str]]) -> None:
        self._render = render
        self._rendered: Mapping[str, str] | None = None

    def _all(self) -> Mapping[str, str]:
        if self._rendered is None:
            self._rendered = self._render()
        return self._rendered

    def __getitem__(self, name: str) -> str:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


def built_program(
    module: Module,
    settings: Settings,
    compiler: Compiler,
    cache: Cache,
    render: Callable[[Callable[[str, str], object]], Program],
) -> tuple[Path, CallableProgram]:
    """Return a module's library, and what calls of it need: as kept, else rendered and compiled.

    ``render`` verifies, lowers and renders the module, and calls what it is given with the name and
    text of each unit that it has rendered before all are; what it raises is raised, as is build's
    ToolchainError. The library of a module that is new may be in the cache, too: its key is the C.
    """
    key = _key(module, settings, compiler, cache) if is_as_loaded() else None
    kept = key and _kept(cache, key, lambda: render(_ignored).sources)
    if kept:
        return kept
    # A module of large constants is not kept, but its library may be there.
    is_new = sum(array.nbytes for array in _constants(module)) <= _MOST
    with EarlyObjects(compiler, cache) as early:
        program = render(early.give if is_new else _ignored)
        library = build(program.sources, compiler, cache, early)
    if key:
        _keep(cache, key, library, program)
    return library, program


def _ignored(name: str, text: str) -> None:
    """Do nothing with a unit."""


def _key(module: Module, settings: Settings, compiler: Compiler, cache: Cache) -> str:
    """Hash all that a program and its library depend on."""
    made = [module_digest(module), repr(settings), generator_digest(cache)]
    return digest(["program", *made, *identity(compiler)])


def _kept(
    cache: Cache, key: str, render: Callable[[], Mapping[str, str]]
) -> tuple[Path, KeptProgram] | None:
    """Return the library and the program kept under a key, if both are in the cache; else None."""
    file = found(cache, key, PROGRAM)
    if file is None:
        return None
    try:
        header, _, constants = file.read_bytes().partition(b"\n")
    except OSError:  # another process has just removed it
        return None
    library_key, workspace_bytes, is_parallel = json.loads(header)
    library = found(cache, library_key)
    if library is None:
        return None
    return library, KeptProgram(constants, workspace_bytes, is_parallel, LateSources(render))


def _keep(cache: Cache, key: str, library: Path, program: Program) -> None:
    """Keep a program and which library it is in, if its constants are not too large; do without
    where the cache cannot be written."""
    if len(program.constants) > _MOST:
        return
    header = json.dumps((library.stem, program.workspace_bytes, program.is_parallel)).encode()
    with suppress(OSError, ToolchainError), workspace(cache) as directory:
        written = Path(directory) / "kept.program"
        written.write_bytes(header + b"\n" + program.constants)
        publish(cache, key, written, PROGRAM)


def module_digest(module: Module) -> str:
    """Hash a module without where it comes from: metadata, tables of locations, the positions in
    its text. Other annotations stay: a custom call may read its ``backend_config``."""
    hashed = hashlib.sha256(hlo.format(_without_locations(module), large_constants=False).encode())
    for array in _constants(module):
        hashed.update(array.tobytes())
    return hashed.hexdigest()


def _constants(module: Module) -> Iterator[Array]:
    """Yield the arrays of a module's constants."""
    for computation in module.computations:
        for instruction in computation.instructions:
            literal = instruction.attributes.get("literal")
            if isinstance(literal, Literal):
                yield from _arrays(literal)


def _without_locations(module: Module) -> Module:
    """Remove the metadata of instructions, and the tables that it refers to."""
    computations = tuple(
        replace(computation, instructions=tuple(map(_without_metadata, computation.instructions)))
        for computation in module.computations
    )
    return replace(module, computations=computations, preamble="")


def _without_metadata(instruction: Instruction) -> Instruction:
    if "metadata" not in instruction.annotations:
        return instruction
    kept = {name: text for name, text in instruction.annotations.items() if name != "metadata"}
    return instruction._replace(annotations=kept)


def _arrays(literal: Literal) -> Iterator[Array]:
    """Yield a literal's arrays."""
    if isinstance(literal.value, tuple):
        for element in literal.value:
            yield from _arrays(element)
    elif literal.value is not None:
        yield literal.value
