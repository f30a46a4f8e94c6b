"""Test this project itself: injected bugs, legal compilers, hostile text, compilers, proofs.

No user needs it, and it is no part of the wheel; each module says with which command it runs.
"""
