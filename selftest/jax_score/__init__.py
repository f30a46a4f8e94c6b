"""Score JAX's functions on the plugin beside XLA:CPU, compared as JAX's own tests compare."""
