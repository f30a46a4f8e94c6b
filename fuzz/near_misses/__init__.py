"""Draw near misses: programs that are almost one that optimisations recognise.

A compiler takes an idiom (an argmax, a top k, a prefix sum, a loop over rows, an order of
comparators) for one operation by its pattern. A pattern that is too wide takes its neighbours for
it, too, and random programs are hardly ever such neighbours. So programs are made of
:mod:`idioms <fuzz.near_misses.idioms>` by :mod:`a few changes <fuzz.near_misses.changes>`.
"""
