"""Rewrite programs to equivalent ones for metamorphic oracles: no bit of a result may change."""

from fuzz.rewrites.table import REWRITES, fitting, rewritten

__all__ = ["REWRITES", "fitting", "rewritten"]
