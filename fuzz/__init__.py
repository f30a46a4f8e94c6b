"""Hypothesis strategies of programs and of arguments for them: the public API of the fuzzer."""

from fuzz.modules import modules, single_op
from fuzz.values import arguments

__all__ = ["arguments", "modules", "single_op"]
