"""Classify opcodes for kernels by the column that has a function for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hlo.walk import Op, column


@dataclass(frozen=True)
class Columns:
    """Hold the backend's columns, opcode ↦ function: expressions, loop nests, plumbing of values.

    ``nested`` has branches and loops inside a computation that is called per element.
    """

    elemental: Mapping[str, Op]
    kernels: Mapping[str, Op]
    plumbing: Mapping[str, Op]
    nested: Mapping[str, Op]


def columns() -> Columns:
    """Return the backend's columns; plumbing is the control flow that emits no steps."""
    control = column("backend_c.lower").items()
    plumbing = {name: op for name, op in control if "block" not in op.given}
    nested = column("backend_c.per_element")
    return Columns(column("backend_c.elemental"), column("backend_c.kernels"), plumbing, nested)
