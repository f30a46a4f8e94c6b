"""Check each op's constraints and infer the shape of its result: one function per opcode."""
