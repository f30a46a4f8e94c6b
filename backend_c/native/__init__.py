"""Compile generated C with the machine's compiler, load the library, call it on NumPy arrays."""
