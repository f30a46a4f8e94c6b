"""Check generated CUDA on a GPU: units of programs, each in a process of its own, and a bundle with
all that this needs for machines without a network."""
