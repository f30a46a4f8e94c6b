"""Generate subgraphs that compiler optimisations match, by name."""

from fuzz.draw.patterns import (
    algebra,
    control,
    conversions,
    elementwise,
    loops,
    movement,
    producers,
    reductions,
    slices,
    windows,
)
from fuzz.draw.patterns.pattern import Pattern, Patterns

__all__ = ["PATTERNS", "Pattern", "Patterns"]

PATTERNS: Patterns = {
    **elementwise.PATTERNS,
    **movement.PATTERNS,
    **reductions.PATTERNS,
    **control.PATTERNS,
    **algebra.PATTERNS,
    **conversions.PATTERNS,
    **slices.PATTERNS,
    **windows.PATTERNS,
    **loops.PATTERNS,
    **producers.PATTERNS,
}
