"""Factor matrices and solve triangular systems."""
