"""The same bits everywhere: generated C under many compilers, flags, threads and sanitizers."""
