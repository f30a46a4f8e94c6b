"""Reduce a program that fails to a few lines that still do."""

from fuzz.reducer.processes import in_processes
from fuzz.reducer.reduction import reduce

__all__ = ["in_processes", "reduce"]
