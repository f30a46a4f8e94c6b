"""Convolve: windows as factors of matrix products, and loops of their own."""
