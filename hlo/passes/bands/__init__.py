"""Compute results in bands of rows: which rows each band depends on, and the loop over them."""
