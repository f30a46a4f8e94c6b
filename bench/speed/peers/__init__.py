"""Compilers to measure: each prepares a program in a worker process."""
