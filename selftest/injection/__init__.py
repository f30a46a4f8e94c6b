"""Mutation testing of the verdict: plausible compiler bugs, planted one at a time.

``python -m selftest.injection`` says how many the verdict proves; ``catalogue.BUGS`` lists them.
"""
