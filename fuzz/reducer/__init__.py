"""Reduce a program that fails to a few lines that still do."""

from fuzz.reducer.reduction import reduce

__all__ = ["reduce"]
