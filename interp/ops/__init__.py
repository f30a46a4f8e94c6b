"""Evaluate each opcode on NumPy arrays: one function per opcode, one file per family."""
