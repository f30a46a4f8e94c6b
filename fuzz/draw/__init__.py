"""Draw programs and their arguments: generators for each opcode, patterns, element values."""
