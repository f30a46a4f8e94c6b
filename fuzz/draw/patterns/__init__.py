"""Generate subgraphs that optimisations look for, by name."""

from fuzz.draw.patterns import control, elementwise, movement, reductions
from fuzz.draw.patterns.pattern import Pattern, Patterns

__all__ = ["PATTERNS", "Pattern", "Patterns"]

PATTERNS: Patterns = {
    **elementwise.PATTERNS,
    **movement.PATTERNS,
    **reductions.PATTERNS,
    **control.PATTERNS,
}
