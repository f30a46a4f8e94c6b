"""Compile libraries, each distinct content once.

cache = open_cache(default_directory(os.environ))
path = build({"unit_0.c": text}, known_compiler(os.environ, cache), cache)
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

from backend_c.native import thread_team
from backend_c.native.cache import Cache, found, publish, workspace
from backend_c.native.early_objects import EarlyObjects
from backend_c.native.linked_runtime import LinkedHeader, linked_headers
from backend_c.native.toolchain import (
    Compiler,
    RefusedForWarnings,
    digest,
    headers,
    identity,
    require,
    run,
    without_warnings,
    workers,
)
from backend_c.native.unit_objects import unit_objects
from hlo.errors import CompilerWarning

_TOLD = (
    "{}\nThe C compiler warns of generated code. It is used as it is; please report the program."
)


def build(
    sources: Mapping[str, str],
    compiler: Compiler,
    cache: Cache,
    early: EarlyObjects | None = None,
) -> Path:
    """Return the library of translation units (``.c``) and headers, compiled if it is not cached.

    Units are compiled in parallel, and may include the runtime headers; some may be in ``early``
    already. Generated C should give no warnings; what a compiler does warn of is a CompilerWarning
    here, and no reason to refuse a program. Raises ToolchainError with the compiler's first error
    lines.
    """
    key = _key(sources, compiler)
    library = found(cache, key)
    if library is not None:
        return library
    with workspace(cache) as directory:
        try:
            made = compiled(sources, compiler, cache, directory, early)
        except RefusedForWarnings as error:
            warnings.warn(_TOLD.format(error), CompilerWarning, stacklevel=2)
            made = compiled(sources, without_warnings(compiler), cache, directory)
        flags = thread_team.linking_words(compiler, cache, directory)
        words = [*compiler.command, "-shared", "-o", "library.so", *made, *flags]
        require(run(words, directory), compiler)
        return publish(cache, key, Path(directory) / "library.so")


def compiled(
    sources: Mapping[str, str],
    compiler: Compiler,
    cache: Cache,
    directory: str,
    early: EarlyObjects | None = None,
) -> list[str]:
    """Compile translation units in a directory; return the objects to link.

    These are theirs, and those of the runtime's procedures that they call.
    """
    linked = [LinkedHeader(name, compiler, cache) for name in linked_headers(sources)]
    with workers() as mapped:
        others = mapped(lambda header: header.object(directory), linked)
        given = early.names(sources) if early else set()
        rest = {name: text for name, text in sources.items() if name not in given}
        made = unit_objects(rest, compiler, cache, directory)
        return [*(early.moved(sources, directory) if early else ()), *made, *others]


def _key(sources: Mapping[str, str], compiler: Compiler) -> str:
    """Hash everything that a library depends on.

    The compiler, sources and headers: equal keys are equal libraries (a content-addressed cache).
    """
    parts = [*identity(compiler), *thread_team.key_parts(compiler)]
    for name, text in sources.items():
        parts += [name, text]
    # Sources include the headers, so that a change of one makes other libraries.
    return digest([*parts, headers()])
