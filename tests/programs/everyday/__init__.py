"""Functions as users of JAX write them every day, by an author who had not seen the rules."""
