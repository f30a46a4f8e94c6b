"""Plausible compiler bugs, put into one instruction of a program at a time: does the verdict see
them? ``python -m fuzz.injection`` says how many; the bugs are the rows of ``catalogue.BUGS``."""
