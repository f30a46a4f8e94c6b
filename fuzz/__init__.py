"""Hypothesis strategies of programs and of arguments for them, and a reducer of programs that fail:
the public API of the fuzzer."""

from fuzz.reducer import reduce
from fuzz.strategies import arguments, computations, loosened, modules, single_op

__all__ = ["arguments", "computations", "loosened", "modules", "reduce", "single_op"]
