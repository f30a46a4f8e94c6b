"""From a dump of a compilation to the pass that changed what the program means, and where it did.

    for dumped in bisect_dump.modules(directory):     # what --xla_dump_to wrote
        history = bisect_dump.History(dumped, arguments, seed)
        for row in history.rows(watch): ...         # each stage beside the one before
        change = history.first_change(watch)        # or the first that means something else,
        found = bisect_dump.culprit(change)           # the first instruction with another value,
        bisect_dump.source(change, found)             # and the line of the source it comes from

``modules`` raises Error where no stage is. Stages that are no programs, get no arguments or have no
result are left out of a history, and its ``faults`` say why; nothing else is raised.

dump: the names of files. stages: their programs. values: exact values that stages have in common,
by cones. matching, following, side_by_side: two stages on the values of one. judging, meanings:
what that proves. history: all stages in order. blame, places: what is shown of an instruction.
"""

from bisect_dump.blame import culprit, source
from bisect_dump.difference_verdict import Judgement
from bisect_dump.dump import Dumped, Stage, grouped, in_order, is_dump, modules
from bisect_dump.history import Change, History, Row
from bisect_dump.side_by_side import Culprit
from bisect_dump.stage_results import Meanings
from bisect_dump.stages import as_stage, same_interface

__all__ = [
    "Change",
    "Culprit",
    "Dumped",
    "History",
    "Judgement",
    "Meanings",
    "Row",
    "Stage",
    "as_stage",
    "culprit",
    "grouped",
    "in_order",
    "is_dump",
    "modules",
    "same_interface",
    "source",
]
