"""Decide and describe loops over rows: reductions joined in them, and short rows written out."""
