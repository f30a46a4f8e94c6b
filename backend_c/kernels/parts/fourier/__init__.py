"""Compute discrete Fourier transforms of any length, exact or fast."""
