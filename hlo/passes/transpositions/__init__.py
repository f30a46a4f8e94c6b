"""Remove transposes: their readers and operands take elements in the order in which they lie."""
