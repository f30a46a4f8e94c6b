"""Module → module: each pass keeps every bit of every result in exact mode."""

from hlo.passes.pipelines import PASSES, PIPELINES, run

__all__ = ["PASSES", "PIPELINES", "run"]
