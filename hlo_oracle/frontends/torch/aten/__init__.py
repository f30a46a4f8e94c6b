"""Define ATen's operations on JAX's arrays: one file per family, each with its ``OPS`` by name."""
