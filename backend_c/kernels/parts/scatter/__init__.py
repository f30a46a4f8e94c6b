"""Fold the updates of a scatter into the elements with their indices, in order or by groups."""
