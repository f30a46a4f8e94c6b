"""Compile cases with JAX: HLO before and after XLA's optimisation, and XLA's result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

import hlo
import interp
from against_jax.case import COMPLEX, Bound, Case
from against_jax.judge import complaints
from against_jax.operands import array
from fuzz.peers.jaxlib_modules import of_hlo
from hlo.values import arrays_of
from interp.envelope.budget import XLA_CPU
from interp.envelope.judgement import Judge
from interp.envelope.verdict import OUTSIDE

# Roundings are instructions, and stay where the program has them.
_OPTIONS = {"xla_allow_excess_precision": False}
_FAST = {"xla_backend_optimization_level": 0}
# What JAX raises for types and shapes that a function does not take.
REFUSALS = (
    TypeError, ValueError, OverflowError, NotImplementedError, jax.errors.JaxRuntimeError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Program:
    """``optimised`` and ``results`` are None where XLA does not compile what JAX made."""

    text: str
    arguments: tuple[np.ndarray, ...]
    optimised: str | None
    results: list[np.ndarray] | None
    bound: Bound


def program(case: Case, type_name: str, run: bool = True, fast: bool = False) -> Program | None:
    """The case for one element type; None if JAX refuses it. ``fast`` leaves out LLVM's passes."""
    bound = case.complex_bound if type_name in COMPLEX else case.bound
    arguments = tuple(array(spec, type_name) for spec in case.operands)
    try:
        # XLA's parameters are the arguments, used or not.
        lowered = jax.jit(case.function, keep_unused=True).lower(*arguments)
        text = _whole_text(lowered.compiler_ir("hlo").as_hlo_module())
    except REFUSALS:
        return None
    if not run:
        return Program(text, arguments, None, None, bound)
    try:
        executable = lowered.compile(compiler_options=_OPTIONS | (_FAST if fast else {}))
        results = [np.asarray(leaf) for leaf in jax.tree.leaves(executable(*arguments))]
    except REFUSALS:
        return Program(text, arguments, None, None, bound)
    optimised = _whole_text(executable.runtime_executable().hlo_modules()[0])
    return Program(text, arguments, optimised, results, bound)


def _whole_text(module: Any) -> str:
    """HLO text with every constant in full."""
    options = of_hlo().HloPrintOptions()
    options.print_large_constants = True
    return str(module.to_string(options))


def parsed(text: str) -> hlo.Module:
    """The module, after it was printed and read again in each dialect, and verified."""
    module = hlo.parse(text)
    for dialect in ("short", "long"):
        assert hlo.parse(hlo.format(module, dialect)) == module, f"not read back from {dialect}"
    hlo.verify(module)
    return module


def evaluated(module: hlo.Module, arguments: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    return list(arrays_of(interp.evaluate(module, *arguments)))


def findings(made: Program) -> Iterator[str]:
    """Compare the interpreter's results with XLA's, before and after optimisation: one line for
    each difference that is not legal."""
    texts = {"before": made.text, "after": made.optimised}
    for stage, text in texts.items():
        if text is None:
            continue
        module = parsed(text)
        ours = evaluated(module, made.arguments)
        if made.results is None:
            continue
        found = list(complaints(ours, made.results, made.bound))
        if found and not _is_legal(module, made, ours):
            yield from (f"{stage} optimisation: {complaint}" for complaint in found)


def _is_legal(module: hlo.Module, made: Program, ours: list[np.ndarray]) -> bool:
    """Whether the envelope says so of what is beyond the row's bound: where terms cancel, no number
    of units bounds what is left."""
    assert made.results is not None
    exact = [("", array) for array in ours]
    judge = Judge(module, made.arguments, exact, peer=XLA_CPU)
    return not judge.judged(made.results, lambda other: None).counts[OUTSIDE]
