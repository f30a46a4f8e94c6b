"""Factorise matrices (Cholesky) and solve triangular systems."""
