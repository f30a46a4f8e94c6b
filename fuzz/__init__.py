"""Export the fuzzer's public API: Hypothesis strategies of programs and arguments, and a reducer.

The strategies need Hypothesis to be installed; nothing else does. Exported names are imported at
their first use.
"""

from typing import TYPE_CHECKING

from hlo.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from fuzz.draw.strategies import arguments, computations, loosened, modules, single_op
    from fuzz.reducer import reduce

__all__ = ["arguments", "computations", "loosened", "modules", "reduce", "single_op"]

_HOMES = dict.fromkeys(__all__, "fuzz.draw.strategies") | {"reduce": "fuzz.reducer"}

__getattr__ = lazy_exports(__name__, _HOMES)
