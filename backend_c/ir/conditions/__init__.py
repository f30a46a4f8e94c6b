"""Rewrite conditions and selects: decided ones, invariant ones, those of preds, tests of bits."""
