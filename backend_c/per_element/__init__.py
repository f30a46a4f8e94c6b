"""Write what has loops or branches of its own inside computations that are applied per element."""
