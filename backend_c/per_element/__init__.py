"""Emit loops and branches inside computations that are applied per element."""
