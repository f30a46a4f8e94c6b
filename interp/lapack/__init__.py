"""Evaluate the LAPACK routines that XLA:CPU calls through custom calls."""
