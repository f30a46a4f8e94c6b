"""Transform modules: each pass maps a module to a module and keeps every bit of every result.

"Every bit" is that of exact mode, with any NaN standing for any other. As the result of each pass
is HLO again, every stage can be printed, interpreted and compared (``hlo opt FILE -o DIR``).

The pass modules are imported lazily, at the first use of a name exported here: verification needs
only one of them.
"""

from typing import TYPE_CHECKING

from hlo.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from hlo.passes.pipelines import PASSES, PIPELINES, run

__all__ = ["PASSES", "PIPELINES", "run"]

__getattr__ = lazy_exports(__name__, dict.fromkeys(__all__, "hlo.passes.pipelines"))
