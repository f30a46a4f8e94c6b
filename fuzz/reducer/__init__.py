"""Reduce a failing program to a few lines that still fail (delta debugging)."""

from fuzz.reducer.processes import in_processes
from fuzz.reducer.reduction import reduce

__all__ = ["in_processes", "reduce"]
