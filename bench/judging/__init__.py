"""Times that judging XLA's results takes, by program."""
