"""Passes over ``while`` loops: what they compute once, or not at all."""
