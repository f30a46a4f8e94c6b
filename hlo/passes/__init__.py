"""Transform modules: each pass maps a module to a module and keeps every bit of every result.

"Every bit" is that of exact mode, with any NaN standing for any other. As the result of each pass
is HLO again, every stage can be printed, interpreted and compared (``hlo opt FILE -o DIR``).
"""

from hlo.passes.pipelines import PASSES, PIPELINES, run

__all__ = ["PASSES", "PIPELINES", "run"]
