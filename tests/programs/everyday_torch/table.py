"""All functions of PyTorch, by family: the modules of this folder that define some."""

from __future__ import annotations

import importlib

from programs.everyday_torch.function import TorchFunction

FAMILIES = (
    "language_models",
    "attention",
    "vision",
    "audio",
    "reinforcement_learning",
    "generative_models",
    "statistics",
    "graphs",
    "physics",
    "recommenders",
    "time_series",
    "losses_and_gradients",
    "optimizers",
    "norms_and_activations",
    "convolutions_and_pools",
    "segments_and_orders",
    "matrices_and_spectra",
    "densities_and_functions",
    "integers_and_quantisation",
)


def functions(family: str) -> dict[str, TorchFunction]:
    """The functions of a family, by name, in the order written."""
    defined = vars(importlib.import_module(f"programs.everyday_torch.{family}")).values()
    return {one.name: one for one in defined if isinstance(one, TorchFunction)}


def all_functions() -> dict[str, TorchFunction]:
    """Every function, by ``family.name``."""
    return {f"{f}.{name}": one for f in FAMILIES for name, one in functions(f).items()}
