"""Sort by known orders and by comparators."""
