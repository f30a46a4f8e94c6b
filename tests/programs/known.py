"""Functions of which XLA's results are outside, and rightly so: defects of XLA, with their reasons.

Each reason names the rule that XLA:CPU 0.10 breaks; docs/evidence/verdict.md has small programs.
"""

REAL: dict[str, str] = {}
