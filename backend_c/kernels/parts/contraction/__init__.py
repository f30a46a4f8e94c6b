"""Multiply matrices on a processor: packed panels, register tiles, sums of each kind."""
