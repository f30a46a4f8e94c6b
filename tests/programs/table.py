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
    "by_hand.state_estimation",
    "by_hand.minimisers",
    "by_hand.differential_equations",
    "by_hand.markets_and_tests",
    "by_hand.series_and_integrals",
    "by_hand.quantised_arithmetic",
    "by_hand.language_models",
    "by_hand.bits_and_dates",
    "by_hand.signals_and_images",
    "by_hand.matrices_and_places",
    "by_hand.mere_roundings",
    "by_hand.singular_matrices",
    "by_hand.graphs_and_tables",
    "by_hand.waves_and_circuits",
    "everyday.training_in_bf16",
    "everyday.losses_and_optimisers",
    "everyday.quantised_layers",
    "everyday.routing_and_decoding",
    "everyday.filters_and_mixtures",
    "everyday.equations",
    "everyday.windows_and_folds",
    "everyday.segments_and_places",
    "everyday.complex_and_spectra",
    "everyday.batched_matrices",
    "everyday.functions_and_statistics",
    "everyday.integers_and_images",
    "everyday.transformed",
    "everyday.in_x64",
)


def functions(family: str) -> dict[str, Function]:
    """The functions of a family, by name, in the order written."""
    defined = vars(importlib.import_module(f"programs.{family}")).values()
    return {one.name: one for one in defined if isinstance(one, Function)}


def all_functions() -> dict[str, Function]:
    """Every function, by ``family.name``."""
    return {f"{f}.{name}": one for f in FAMILIES for name, one in functions(f).items()}
