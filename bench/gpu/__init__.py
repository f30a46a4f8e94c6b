"""Measure programs on a GPU, beside XLA and PyTorch on the same one."""
