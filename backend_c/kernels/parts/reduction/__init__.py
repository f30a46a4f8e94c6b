"""Reduce, scan and fold windows: exact sums, monoids in reordered loops, argmax."""
