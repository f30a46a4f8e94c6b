"""Every program that JAX makes: tables of functions, and the judge of their results."""
