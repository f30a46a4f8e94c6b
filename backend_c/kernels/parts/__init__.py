"""Provide what loop nests are made of: exact sums, factors of contractions, windows, groups."""
