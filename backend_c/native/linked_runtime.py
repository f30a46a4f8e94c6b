"""Compile the runtime's large procedures once per machine, and link them (runtime/hlo_linked.h).

A library with a product of matrices takes gcc 0.06 s then, not 0.22: its units get declarations in
place of the header, and are linked with the object of the header's procedures.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from backend_c.native.cache import Cache, remembered
from backend_c.native.kept_objects import put_object
from backend_c.native.toolchain import (
    RUNTIME,
    Compiler,
    digest,
    headers,
    identity,
    require,
    run,
)

_INCLUDED = re.compile(r'#include "(\w+\.h)"')
_DEFINING = "-DHLO_LINKED_OBJECT"
# What is before the body of a procedure that other units see, in a header after preprocessing.
_DECLARATION = re.compile(r'[^;{}]*visibility *\("hidden"\)[^;{}]*(?=\{)')


def linked_headers(sources: Mapping[str, str]) -> list[str]:
    """List the headers with linked procedures that units include, by name."""
    included = {name for text in sources.values() for name in _INCLUDED.findall(text)}
    return sorted(name for name in included if _is_linked(name, headers()))


@lru_cache(64)
def _is_linked(header: str, hashed: str) -> bool:
    """Return whether a header has linked procedures, directly or by includes.

    ``hashed``, the hash of the headers, is part of the key of the memo.
    """
    included = _included(header)
    return "hlo_linked.h" in included or any(_is_linked(name, hashed) for name in included)


def _included(header: str) -> list[str]:
    """List the headers that a header of the runtime includes."""
    path = RUNTIME / header
    if not path.exists():  # it is one of the sources
        return []
    return _INCLUDED.findall(path.read_text("utf-8"))


def _whole(header: str) -> set[str]:
    """Return the headers without linked procedures that a linked one includes, for their types."""
    if not _is_linked(header, headers()):
        return {header}
    return {name for included in _included(header) for name in _whole(included)}


@dataclass(frozen=True, slots=True)
class LinkedHeader:
    """Split a header for units: declarations to include, and an object file to link."""

    name: str
    compiler: Compiler
    cache: Cache

    @property
    def _defining(self) -> Compiler:
        """Return the compiler with the flag under which the header defines its procedures."""
        return replace(self.compiler, flags=(*self.compiler.flags, _DEFINING))

    def _key(self, kind: str) -> str:
        """Hash all that the header's declarations or object depend on."""
        return digest([kind, self.name, *identity(self._defining), headers()])

    def declare(self, directory: str) -> None:
        """Write the header's declarations into a directory, where units include them first."""
        text = remembered(self.cache, self._key("declarations and types"), self._declarations)
        (Path(directory) / self.name).write_text(text, "utf-8")

    def _declarations(self) -> str:
        """Extract the declarations from the preprocessed header."""
        compiler = self._defining
        done = run([*compiler.command, *compiler.flags, "-E", "-P", str(RUNTIME / self.name)])
        require(done, compiler)
        # Weak is what is defined: what is called must be there.
        hidden = (one.replace(", weak", "") for one in _DECLARATION.findall(done.stdout))
        declared = (" ".join(one.split()) for one in hidden)
        included = "".join(f'#include "{name}"\n' for name in sorted(_whole(self.name)))
        return included + "".join(f"{one};\n" for one in declared)

    def object(self, directory: str) -> str:
        """Put the object into a directory, compiled if it is not cached; return its name."""
        made = Path(directory) / self.name.replace(".h", ".o")
        source = {"linked.c": f'#include "{self.name}"\n'}
        return put_object(made, self._key("object"), source, self._defining, self.cache)
