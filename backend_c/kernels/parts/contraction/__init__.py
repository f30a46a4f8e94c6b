"""Multiply matrices: factors as packed panels, loops around tiles, sums of each kind."""
