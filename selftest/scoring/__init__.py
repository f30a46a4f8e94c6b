"""Run named cases in worker processes, journal their outcomes, and write the page of a score."""
