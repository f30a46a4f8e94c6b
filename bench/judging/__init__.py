"""Measure the time that judging XLA's results takes, by program."""
