"""Subgraphs that optimisations look for, by name."""

from fuzz.patterns import control, elementwise, movement, reductions
from fuzz.patterns.pattern import Pattern, Patterns

__all__ = ["PATTERNS", "Pattern", "Patterns"]

PATTERNS: Patterns = {
    **elementwise.PATTERNS,
    **movement.PATTERNS,
    **reductions.PATTERNS,
    **control.PATTERNS,
}
