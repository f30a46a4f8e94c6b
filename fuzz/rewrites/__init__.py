"""Rewrite programs to equivalent ones for metamorphic oracles: every bit of a result stays the
same."""

from fuzz.rewrites.table import REWRITES, fitting, rewritten

__all__ = ["REWRITES", "fitting", "rewritten"]
