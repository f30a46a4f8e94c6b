"""Explain a compiled program: what each kernel does, why it is one, and what bounds its time."""
