"""All functions, by family: the modules of this folder that define some."""

from __future__ import annotations

import importlib

from programs.function import Function

FAMILIES = (
    "activations",
    "narrow_types",
    "solvers",
    "factorizations",
    "recurrent",
    "loops",
    "sorting",
    "indexing",
    "convolutions",
    "spectral",
    "integers",
    "random_numbers",
    "special_functions",
    "simulation",
    "training",
    "sums",
    "narrow_layers",
    "mixed_precision",
    "folds_and_scans",
    "transformer_blocks",
    "training_steps",
    "numerical_methods",
    "data_processing",
    "control_flow",
    "odd_corners",
)


def functions(family: str) -> dict[str, Function]:
    """The functions of a family, by name, in the order written."""
    defined = vars(importlib.import_module(f"programs.{family}")).values()
    return {one.name: one for one in defined if isinstance(one, Function)}


def all_functions() -> dict[str, Function]:
    """Every function, by ``family.name``."""
    return {f"{f}.{name}": one for f in FAMILIES for name, one in functions(f).items()}
