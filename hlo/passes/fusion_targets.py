"""List the targets of fusion: what decides between fusions of each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """State what decides between fusions of a target.

    With ``has_epilogues`` contractions are absorbed by what is computed of their elements
    (:mod:`hlo.passes.epilogues`), with ``has_prologues`` they compute the factors that they read
    once (:mod:`hlo.passes.prologues`). With ``updates_any_part``, of one without memory to spare,
    updates of any part are in place.
    ``rows_are_lanes``: a kernel that reduces many short rows has a lane for each. Exact sums have a
    branch instead, for what their error bound leaves open: elementary functions of them are
    computed apart from them, in lanes of their own. ``has_rows_across``: a kernel may run along
    rows that lie across memory, neighbouring ones in lanes. ``writes_rows``: loops in lanes have
    the code of short rows one after the other (:mod:`hlo.passes.row_loops.written_rows`).
    """

    has_epilogues: bool = False
    has_prologues: bool = False
    updates_any_part: bool = False
    rows_are_lanes: bool = True
    has_rows_across: bool = False
    writes_rows: bool = False


# By the name of the pass.
TARGETS = {
    "fusion": Target(),
    "fusion_of_exact_sums": Target(rows_are_lanes=False, writes_rows=True),
    "fusion_of_exact_sums_by_threads": Target(rows_are_lanes=False),
    "fusion_with_epilogues": Target(
        has_epilogues=True, has_prologues=True, has_rows_across=True, writes_rows=True
    ),
    "fusion_with_epilogues_by_threads": Target(has_epilogues=True),
    "fusion_in_little_memory": Target(has_epilogues=True, updates_any_part=True),
}
