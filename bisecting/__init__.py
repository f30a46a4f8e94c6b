"""From a dump of a compilation to the pass that changed what the program means, and where it did.

    for dumped in bisecting.modules(directory):     # what --xla_dump_to wrote
        history = bisecting.History(dumped, arguments, seed)
        for row in history.rows(watch): ...         # each stage beside the one before
        change = history.first_change(watch)        # or the first that means something else,
        found = bisecting.culprit(change)           # the first instruction with another value,
        bisecting.source(change, found)             # and the line of the source it comes from

``modules`` raises Error where no stage is. Stages that are no programs, get no arguments or have no
result are left out of a history, and its ``faults`` say why; nothing else is raised.

dump: the names of files. stages: their programs. values: exact values that stages have in common,
by cones. matching, following, side_by_side: two stages on the values of one. judging, meanings:
what that proves. history: all stages in order. blame, places: what is shown of an instruction.
"""

from bisecting.blame import culprit, source
from bisecting.dump import Dumped, Stage, grouped, in_order, is_dump, modules
from bisecting.history import Change, History, Row
from bisecting.judging import Judgement
from bisecting.meanings import Meanings
from bisecting.side_by_side import Culprit
from bisecting.stages import as_stage, same_interface

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
