"""Render a plan as C: kernels as functions, grouped into translation units, and the entry point."""
