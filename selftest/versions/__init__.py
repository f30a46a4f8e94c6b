"""Go through every way from JAX and PyTorch into this project, by versions that users have."""
