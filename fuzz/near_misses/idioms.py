"""Read the idioms that near misses are made of: 80 functions as JAX writes them, by topic.

They are the small ones of ``tests/programs``, before any optimisation, chosen one after the other
by how many chains of three opcodes each adds to those before it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from hlo.module import Computation, Module
from hlo.passes.rewriting import each, with_entry
from hlo.text.parser import parse
from hlo.types import without_layout

# The configuration of a custom call, and the ranks of sends.
_TELLING = ("backend_config", "frontend_attributes")
_TEXTS = Path(__file__).parent / "texts"


@cache
def idioms() -> tuple[Module, ...]:
    """Return the idioms in the order of their names."""
    return tuple(prepared(parse(path.read_text("utf-8"))) for path in sorted(_TEXTS.rglob("*.hlo")))


def prepared(module: Module) -> Module:
    """Drop layouts, which a change of shapes would contradict, and the annotations that say nothing
    of values."""
    bare = each(module, _bare)
    return with_entry(bare, bare.entry)


def _bare(computation: Computation) -> Computation:
    instructions = tuple(
        i._replace(
            shape=without_layout(i.shape),
            annotations={name: i.annotations[name] for name in _TELLING if name in i.annotations},
        )
        for i in computation.instructions
    )
    return replace(computation, instructions=instructions)
