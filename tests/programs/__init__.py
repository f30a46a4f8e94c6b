"""Functions as users of JAX write them, by family, and what the verdict says of XLA's results."""
