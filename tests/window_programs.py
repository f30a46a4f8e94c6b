"""Programs of one reduce-window, which passes rewrite."""

from __future__ import annotations

import hlo
from hlo.module import Module


def window_program(
    dims: tuple[int, ...], result: str, window: str, operation: str = "add"
) -> Module:
    """Return the program of a reduce-window of f32; ``result`` are the extents of its result."""
    sizes = ",".join(map(str, dims))
    return hlo.parse(f"""HloModule m
op {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] {operation}(a, b)
}}
ENTRY e {{
  x = f32[{sizes}] parameter(0)
  i = f32[] constant(0.5)
  ROOT r = f32[{result}] reduce-window(x, i), window={{{window}}}, to_apply=op
}}""")
