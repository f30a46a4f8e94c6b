"""Render the loop IR as source text in one of the dialects: OpenMP C, embedded C99, CUDA."""
