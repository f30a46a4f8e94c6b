"""Compute exact real results, rounded once: sums, dot products, conversions, functions."""
