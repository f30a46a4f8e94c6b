"""Generate subgraphs that compiler optimisations match, by name."""

from fuzz.draw.patterns import (
    algebra,
    bitcasts,
    complexes,
    constants,
    control,
    conversions,
    elementwise,
    long_loops,
    long_windows,
    loops,
    movement,
    producers,
    reductions,
    scatters,
    slices,
    sorting,
    tuples,
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
    **tuples.PATTERNS,
    **long_loops.PATTERNS,
    **sorting.PATTERNS,
    **scatters.PATTERNS,
    **long_windows.PATTERNS,
    **complexes.PATTERNS,
    **bitcasts.PATTERNS,
    **constants.PATTERNS,
}
