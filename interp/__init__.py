"""The reference interpreter: evaluate HLO in NumPy, every float result exact and rounded once."""

from interp.evaluator import evaluate
from interp.observation import Collected, Seen
from interp.profiling import Profile, profile

__all__ = ("Collected", "Profile", "Seen", "evaluate", "profile")
