"""Bound the errors of sums of floats in any order."""
