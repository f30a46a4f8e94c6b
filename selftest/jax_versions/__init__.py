"""Go through every way from JAX into this project, by versions of JAX that users have."""
