"""Transform by Fourier, of any length."""
