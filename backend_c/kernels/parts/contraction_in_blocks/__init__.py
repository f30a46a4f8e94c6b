"""Multiply matrices in blocks of threads: tiles in shared memory, tensor cores."""
