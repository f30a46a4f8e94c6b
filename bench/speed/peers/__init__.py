"""Compilers that are measured: each makes a program ready in a worker process."""
