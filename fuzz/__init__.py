"""Export the fuzzer's public API: Hypothesis strategies of programs and arguments, and a reducer.

The strategies need Hypothesis to be installed; nothing else does. Exported names are imported at
their first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fuzz.draw.strategies import arguments, computations, loosened, modules, single_op
    from fuzz.reducer import reduce

__all__ = ["arguments", "computations", "loosened", "modules", "reduce", "single_op"]


def __getattr__(name: str) -> object:
    if name in __all__:
        home = "fuzz.reducer" if name == "reduce" else "fuzz.draw.strategies"
        return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
