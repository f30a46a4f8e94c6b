"""Compile libraries, each distinct content once.

cache = open_cache(default_directory(os.environ))
path = build({"unit_0.c": text}, known_compiler(os.environ, cache), cache)
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from backend_c.native import thread_team
from backend_c.native.cache import HEADERS, Cache, found, place, publish, workspace
from backend_c.native.linked_runtime import LinkedHeader, linked_headers
from backend_c.native.toolchain import (
    RUNTIME,
    Compiler,
    RefusedForWarnings,
    digest,
    headers,
    identity,
    is_gcc,
    objects,
    require,
    run,
    without_warnings,
    workers,
)
from hlo.errors import CompilerWarning

_TOLD = (
    "{}\nThe C compiler warns of generated code. It is used as it is; please report the program."
)
_ALL_HEADERS = "hlo_kernels.h"  # what each unit includes first


def build(sources: Mapping[str, str], compiler: Compiler, cache: Cache) -> Path:
    """Return the library of translation units (``.c``) and headers, compiled if it is not cached.

    Units are compiled in parallel, and may include the runtime headers. Generated C should give no
    warnings; what a compiler does warn of is a CompilerWarning here, and no reason to refuse a
    program. Raises ToolchainError with the compiler's first error lines.
    """
    key = _key(sources, compiler)
    library = found(cache, key)
    if library is not None:
        return library
    with workspace(cache) as directory:
        try:
            made = compiled(sources, compiler, cache, directory)
        except RefusedForWarnings as error:
            warnings.warn(_TOLD.format(error), CompilerWarning, stacklevel=2)
            made = compiled(sources, without_warnings(compiler), cache, directory)
        flags = thread_team.linking_words(compiler, cache, directory)
        words = [*compiler.command, "-shared", "-o", "library.so", *made, *flags]
        require(run(words, directory), compiler)
        return publish(cache, key, Path(directory) / "library.so")


def compiled(
    sources: Mapping[str, str], compiler: Compiler, cache: Cache, directory: str
) -> list[str]:
    """Compile translation units in a directory; return the objects to link.

    These are theirs, and those of the runtime's procedures that they call.
    """
    includes = any(f'#include "{_ALL_HEADERS}"' in text for text in sources.values())
    read = headers_read(compiler, cache, headers()) if includes else None
    if read is not None:
        with suppress(OSError):  # it went since: gcc reads the text then
            place(read, Path(directory) / f"{_ALL_HEADERS}.gch")
    linked = [LinkedHeader(name, compiler, cache) for name in linked_headers(sources)]
    for header in linked:
        header.declare(directory)
    with workers() as mapped:
        others = mapped(lambda header: header.object(directory), linked)
        made = objects(sources, compiler, directory)
        return [*made, *others]


@lru_cache(8)
def headers_read(compiler: Compiler, cache: Cache, hashed: str) -> Path | None:
    """Return gcc's precompiled runtime headers; None for other compilers.

    gcc takes that file in place of the first header that a unit includes, if it lies beside the
    unit and was made by the same gcc with the same flags: 0.06 s less for each unit. ``hashed`` is
    the hash of the headers.
    """
    if not is_gcc(compiler):
        return None
    key = digest(["headers", *identity(compiler), hashed])
    kept = found(cache, key, HEADERS)
    if kept is not None:
        return kept
    with workspace(cache) as directory:
        words = [*compiler.command, *compiler.flags, "-x", "c-header", str(RUNTIME / _ALL_HEADERS)]
        if run([*words, "-o", "headers.gch"], directory).returncode:
            return None
        return publish(cache, key, Path(directory) / "headers.gch", HEADERS)


def _key(sources: Mapping[str, str], compiler: Compiler) -> str:
    """Hash everything that a library depends on.

    The compiler, sources and headers: equal keys are equal libraries (a content-addressed cache).
    """
    parts = [*identity(compiler), *thread_team.key_parts(compiler)]
    for name, text in sources.items():
        parts += [name, text]
    # Sources include the headers, so that a change of one makes other libraries.
    return digest([*parts, headers()])
