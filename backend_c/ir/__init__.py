"""Represent kernels in a small typed loop IR, and build it: scopes, indices, elements, nests."""
