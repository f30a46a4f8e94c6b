"""Enclose every legal result of each opcode: one rule per opcode."""
