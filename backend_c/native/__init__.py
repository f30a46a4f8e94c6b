"""Compile C, cache the library, load it, and call it with NumPy arrays."""
