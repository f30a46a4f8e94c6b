"""The reference interpreter: evaluate HLO in NumPy, every float result exact and rounded once."""

from interp.evaluator import evaluate

__all__ = ("evaluate",)
