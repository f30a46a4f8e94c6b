"""Provide building blocks of loop nests: exact sums, factors of contractions, windows, groups."""
