"""Convolve: as matrix products with implicit im2col, and by loops of their own."""
