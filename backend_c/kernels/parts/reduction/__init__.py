"""Reduce, scan and fold windows, exactly and in other orders."""
