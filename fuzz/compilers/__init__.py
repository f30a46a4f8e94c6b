"""Build and run generated C under many compilers, flags, thread counts and sanitizers."""
