"""Fold the updates of a scatter into the elements that they meet."""
