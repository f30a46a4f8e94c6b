"""Pieces of loop nests that several kernels are made of."""
