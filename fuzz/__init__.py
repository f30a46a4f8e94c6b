"""Hypothesis strategies of programs and of arguments for them, and a reducer of programs that fail:
the public API of the fuzzer."""

from fuzz.modules import modules, single_op
from fuzz.reducer import reduce
from fuzz.values import arguments

__all__ = ["arguments", "modules", "reduce", "single_op"]
