"""Measure which opcode supports which element type, and write docs/ops.md."""
