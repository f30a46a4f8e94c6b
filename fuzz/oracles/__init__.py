"""Define oracles, properties that every program has; ``ORACLES`` has them by name."""

from fuzz.oracles.oracle import Difference, LeftOut, Oracle, Outcome
from fuzz.oracles.table import ORACLES, is_known, named

__all__ = ["ORACLES", "Difference", "LeftOut", "Oracle", "Outcome", "is_known", "named"]
