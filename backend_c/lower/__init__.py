"""Lower a module to a plan: kernels, control flow, and buffers in one workspace."""
