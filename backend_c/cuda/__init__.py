"""Map kernels to CUDA launches: phases, blocks and threads, barriers, the host's part."""
