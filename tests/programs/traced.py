"""Trace functions with JAX: HLO text, before any optimisation."""

from __future__ import annotations

import jax
import numpy as np
from jaxlib import _hlo

from programs.function import Function

# What JAX raises for types that a function does not take.
REFUSALS = (TypeError, ValueError, NotImplementedError)


def traced(one: Function, arguments: tuple[np.ndarray, ...]) -> str:
    """The function's HLO, with every constant in full and every argument a parameter."""
    options = _hlo.HloPrintOptions()
    options.print_large_constants, options.print_metadata = True, False
    with jax.enable_x64(one.is_wide):
        lowered = jax.jit(one.function, keep_unused=True).lower(*arguments)
    return str(lowered.compiler_ir("hlo").as_hlo_module().to_string(options))
