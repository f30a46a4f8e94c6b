"""Summarise a module in one line, and as HTML tables for notebooks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from hlo.types import Shape, TupleShape, leaves

if TYPE_CHECKING:
    from hlo.module import Module

_MOST = 12  # rows of a kind
_LONGEST = 60  # characters of a shape


def counted(number: int, noun: str) -> str:
    """Format a number with its noun, in the plural unless it is 1."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def brief(shape: Shape) -> str:
    """Format a shape; a long tuple as its number of arrays."""
    text = str(shape)
    if len(text) <= _LONGEST or not isinstance(shape, TupleShape):
        return text
    return f"({counted(len(leaves(shape)), 'array')})"


def signature(parameters: Sequence[Shape], result: Shape) -> str:
    """Format ``(f32[3], f32[3]) -> f32[3]``; long lists as the number of parameters."""
    text = ", ".join(map(brief, parameters))
    given = text if len(text) <= _LONGEST else counted(len(parameters), "parameter")
    return f"({given}) -> {brief(result)}"


def line(module: Module) -> str:
    """Format a module as its name, size and signature."""
    entry = module.entry
    shapes = [parameter.shape for parameter in entry.parameters]
    return (
        f"Module({module.name}: {counted(module.instruction_count, 'instruction')} in"
        f" {counted(len(module.computations), 'computation')},"
        f" {signature(shapes, entry.root_instruction.shape)})"
    )


def html(module: Module) -> str:
    """Describe a module as tables: parameters, result, and how often each opcode is used."""
    entry = module.entry
    rows = [(p.name, str(p.shape)) for p in entry.parameters[:_MOST]]
    if len(entry.parameters) > _MOST:
        rows.append((f"{len(entry.parameters) - _MOST} more parameters", ""))
    rows.append((f"result: {entry.root}", brief(entry.root_instruction.shape)))
    opcodes = Counter(i.opcode for c in module.computations for i in c.instructions)
    used = [(opcode, f"{count:,}") for opcode, count in opcodes.most_common(_MOST)]
    return f"<p><code>{escape(line(module))}</code></p>{_table(rows)}{_table(used)}"


def _table(rows: Sequence[tuple[str, str]]) -> str:
    cells = (f"<tr><td>{escape(a)}</td><td>{escape(b)}</td></tr>" for a, b in rows)
    return f'<table style="display:inline-table">{"".join(cells)}</table>'
