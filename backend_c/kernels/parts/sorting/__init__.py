"""Sort rows: radix sorts by recognised orders, merge sorts by any comparator, selection."""
