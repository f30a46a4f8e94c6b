"""Test a C compiler on kernels with known answers before its libraries are used.

A compiler is a suspect: gcc 12 drops roundings and leaves out elements that it gathers, each at
some flags and for some processors only (docs/same_bits.md). When one is met first, small kernels of
the shapes that this backend generates are compiled with the flags of ``backend_c.compile``, and run
in a process of their own. The verdict is kept beside the libraries.

questions   the programs, from tables
inputs      their arguments from seeds, and digests of their results; driver.c does the same
answers     the digests as the interpreter has them: python -m selftest.probe_answers
verdict     the flags that may be used: those as shipped, or the first that give all answers
"""
