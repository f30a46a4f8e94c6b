"""Measure compiled programs beside other compilers, interleaved in one run."""
