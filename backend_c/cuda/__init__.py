"""Map kernels to launches of CUDA: phases, blocks and threads, barriers."""
