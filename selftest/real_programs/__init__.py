"""Run real JAX programs (examples/jax) on the plugin beside XLA:CPU."""
