"""Check generated CUDA on a GPU: units of programs, each in a process of its own, and a bundle of
all that takes for machines without a network."""
