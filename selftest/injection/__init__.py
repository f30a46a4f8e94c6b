"""Plausible compiler bugs, put into one instruction of a program at a time: does the verdict see
them? ``python -m selftest.injection`` says how many; the bugs are rows of ``catalogue.BUGS``."""
