"""Find the pass of a dumped compilation that changed a program's meaning, and the instruction.

    for dumped in bisect_dump.modules(directory):    # the files that --xla_dump_to wrote
        history = bisect_dump.History(dumped, arguments, seed, read)
        for row in history.rows(watch): ...          # each stage judged against the one before
        change = history.first_change(watch)         # or the first stage with another meaning,
        found = bisect_dump.culprit(change)          # the first instruction with another value,
        bisect_dump.source(change, found)            # and the source line it was made from

``modules`` raises Error if the directory holds no stage. ``read(stage)`` returns a stage's module;
by default its file is HLO text. Stages that do not parse, that the given arguments do not fit, or
whose evaluation fails are left out of a history; its ``faults`` say why.

The files, in the order of the work:

    dump              names of the files, stages of each module in order
    stages            a stage as a program; whether two stages are the same program
    value_numbers     value numbering: equal digests for instructions that compute the same
    shared_values     exact values, each computed once for all stages that have it
    matching          which instructions of two stages correspond
    replay            the earlier stage evaluated step by step on the later stage's values
    side_by_side      two stages: the first instruction whose value changed
    difference_verdict, stage_results   the verdict on a stage beside the one before
    history           all stages of a module
    blame, text_lines, excerpts         what is shown of the culprit
"""

from typing import TYPE_CHECKING

from hlo.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from bisect_dump.blame import culprit, source
    from bisect_dump.difference_verdict import Judgement
    from bisect_dump.dump import (
        Dumped,
        Stage,
        contents,
        grouped,
        in_order,
        is_dump,
        is_report,
        modules,
    )
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
    "contents",
    "culprit",
    "grouped",
    "in_order",
    "is_dump",
    "is_report",
    "modules",
    "same_interface",
    "source",
]

_HOMES = {
    "Change": "bisect_dump.history",
    "Culprit": "bisect_dump.side_by_side",
    "Dumped": "bisect_dump.dump",
    "History": "bisect_dump.history",
    "Judgement": "bisect_dump.difference_verdict",
    "Meanings": "bisect_dump.stage_results",
    "Row": "bisect_dump.history",
    "Stage": "bisect_dump.dump",
    "as_stage": "bisect_dump.stages",
    "contents": "bisect_dump.dump",
    "culprit": "bisect_dump.blame",
    "grouped": "bisect_dump.dump",
    "in_order": "bisect_dump.dump",
    "is_dump": "bisect_dump.dump",
    "is_report": "bisect_dump.dump",
    "modules": "bisect_dump.dump",
    "same_interface": "bisect_dump.stages",
    "source": "bisect_dump.blame",
}

__getattr__ = lazy_exports(__name__, _HOMES)
