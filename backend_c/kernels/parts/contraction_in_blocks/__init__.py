"""Multiply matrices on a GPU: tiles in shared memory, tensor cores, sums by threads."""
