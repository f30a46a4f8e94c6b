"""Run programs of JAX that people write (examples/jax) on the plugin beside XLA:CPU."""
