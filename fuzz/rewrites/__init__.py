"""Equivalent programs: a rewrite changes one place of a program, and no bit of its results."""

from fuzz.rewrites.table import REWRITES, fitting, rewritten

__all__ = ["REWRITES", "fitting", "rewritten"]
