"""Transform modules: each pass maps a module to a module and keeps every bit of every result.

"Every bit" is that of exact mode, with any NaN standing for any other. As the result of each pass
is HLO again, every stage can be printed, interpreted and compared (``hlo opt FILE -o DIR``).

The pass modules are imported lazily, at the first use of a name exported here: verification needs
only one of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlo.passes.pipelines import PASSES, PIPELINES, run

__all__ = ["PASSES", "PIPELINES", "run"]


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(import_module("hlo.passes.pipelines"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
