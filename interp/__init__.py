"""The reference: what HLO means, in NumPy, exactly."""

from interp.evaluator import evaluate

__all__ = ("evaluate",)
