"""Reject emitted C that computes in doubles, for processors that do so in software."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backend_c.lower.plan import Origin
from backend_c.projects.reachable_c import words_reached
from hlo.errors import Unsupported
from hlo.types import C128, F64, leaves

_WIDE = (F64, C128)
_WORD = "double"


def require_single(text: str, origins: Mapping[str, Sequence[Origin]], *, is_fast: bool) -> None:
    """Raise Unsupported if a kernel reaches doubles; name its instruction and a way out.

    ``origins``: the instructions of each kernel.
    """
    if _WORD not in text:
        return
    for name, computed in origins.items():
        if _WORD in words_reached(text, name):
            origin = computed[0]
            raise Unsupported(
                f"%{origin.instruction} of {origin.computation} takes double precision:"
                f" {_way_out(origin, is_fast=is_fast)}"
            )


def _way_out(origin: Origin, *, is_fast: bool) -> str:
    """Return the advice that ends the message, by the reason why the kernel computes in doubles."""
    instructions = () if origin.computes is None else origin.computes.instructions
    if any(leaf.element_type in _WIDE for i in instructions for leaf in leaves(i.shape)):
        return "convert its f64 arrays to f32 in the program, or allow doubles"
    if not is_fast:
        return "exact numerics compute floats in f64; take fast ones, or allow doubles"
    opcodes = sorted({i.opcode for i in instructions if i.opcode != "parameter"})
    return f"f32 has too few digits within {', '.join(opcodes)}; replace that, or allow doubles"
