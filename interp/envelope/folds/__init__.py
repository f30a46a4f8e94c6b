"""Folds in any order, in the order written, and of pairs: what each may give."""
