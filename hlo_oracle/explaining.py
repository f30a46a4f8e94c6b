"""Make a page of a program in any form, for a browser or a notebook: :func:`explain`."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import backend_c
import pages
from backend_c.profiles.listing import Listing
from backend_c.render.dialect import DIALECTS, OPENMP
from hlo.errors import Unsupported
from hlo.module import Module
from hlo_oracle import arguments as drawing
from hlo_oracle.loading import objects


def explain(
    program: object,
    *arguments: Any,
    measure: bool = False,
    numerics: str = "fast",
    threads: int | None = None,
    source: Sequence[Path | str] | None = None,
    **keywords: Any,
) -> pages.Page:
    """Make a page that shows a program: its graph, kernels, their C, time and memory.

    ``program`` is what :func:`load` takes: a function with its ``arguments`` and ``keywords``, too.
    ``measure`` runs it, on arguments drawn by their shapes, and times each kernel. ``source`` names
    source files to include; by default the one of the function. A notebook displays the page;
    ``page.write("f.html")`` writes it.
    """
    found = objects.program_of(program, arguments, keywords)
    if measure:
        values = found.arguments or drawing.from_seed(found.module, 0)
        executable = backend_c.compile(found.module, numerics, threads=threads)
        profile = executable.profile(*values)
    else:
        profile = backend_c.explain(found.module, numerics, threads=threads)
    files = _own_file(program) if source is None else [Path(file) for file in source]
    lines = pages.source_lines(found.module, files)
    return pages.explanation(
        found.module, profile, lines, targets=other_targets(found.module, numerics)
    )


def other_targets(module: Module, numerics: str) -> dict[str, Listing]:
    """List the code of a module for targets other than OpenMP, by target name; a target that does
    not support the module is left out."""
    found = {}
    for name in DIALECTS:
        if name != OPENMP.name:
            with suppress(Unsupported):
                found[name] = backend_c.listing(module, name, numerics)
    return found


def _own_file(program: object) -> list[Path]:
    """Return the source file of a Python function as a list; empty if there is none."""
    if not callable(program) or not objects.is_function(program):
        return []
    try:
        file = inspect.getsourcefile(inspect.unwrap(program))
    except TypeError:  # a callable object, or a function of C
        return []
    return [Path(file)] if file and Path(file).is_file() else []
