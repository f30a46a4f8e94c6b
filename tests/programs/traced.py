"""Trace functions with JAX: HLO text, before any optimisation."""

from __future__ import annotations

import jax
import numpy as np

from fuzz.peers.jaxlib_modules import of_hlo
from hlo_oracle.frontends.jax_internals import with_x64
from programs.function import Function

# What JAX raises for types that a function does not take.
REFUSALS = (TypeError, ValueError, NotImplementedError)


def traced(one: Function, arguments: tuple[np.ndarray, ...]) -> str:
    """The function's HLO, with every constant in full and every argument a parameter."""
    options = of_hlo().HloPrintOptions()
    options.print_large_constants, options.print_metadata = True, False
    with with_x64(one.is_wide):
        lowered = jax.jit(one.function, keep_unused=True).lower(*arguments)
    return str(lowered.compiler_ir("hlo").as_hlo_module().to_string(options))
