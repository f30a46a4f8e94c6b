"""Enclosure rules: for each opcode the intervals of all legal results, given those of its
operands."""
