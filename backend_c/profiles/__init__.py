"""Explain a compiled program: what each kernel computes, why it was not fused further, its
limits."""
