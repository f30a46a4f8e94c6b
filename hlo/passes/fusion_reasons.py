"""Define the reasons for which fusion starts a kernel: why a value is stored in memory instead of
being recomputed in the loops that read it.

The pass gives each decision its reason (:func:`hlo.passes.fusion.fused_with_reasons`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Why(StrEnum):
    """Enumerate the reasons to store a value."""

    OWN_KERNEL = "own kernel"
    BOUNDED = "bounded size"
    ARRAY_CONSTANT = "array constant"
    PAYLOAD = "payload"
    MANY_PARTS = "many parts"
    UPDATED_IN_PLACE = "updated in place"
    SEVERAL_RESULTS = "several results"
    NO_ROWS = "no rows"
    NO_ROWS_ACROSS = "no rows across"
    READ_BEYOND_ROW = "read beyond its row"
    NEEDED_BY_LOOPS = "needed by several loops"
    OTHER_ROWS = "other rows"
    NO_LANES = "no lanes"
    NO_OTHER_LOOP = "no other loop"
    READ_IN_SNIPPETS = "read in snippets"
    RESULT = "result"
    READ_IN_MEMORY = "read in memory"
    UNUSED = "unused"
    READ_AS_BYTES = "read as bytes"
    READS_WHAT_IS_UPDATED = "reads what is updated"
    READ_ACROSS = "read across rows"
    TOO_LARGE = "too large"
    COSTS_MORE = "costs more to repeat"
    EPILOGUE = "epilogue"


_TEXTS = {
    Why.OWN_KERNEL: "a {0} is a kernel of its own",
    Why.BOUNDED: "arrays of a bounded size are not fused",
    Why.ARRAY_CONSTANT: "an array constant lies in memory",
    Why.PAYLOAD: "a NaN of other bits than the usual ones lies in memory",
    Why.MANY_PARTS: "a concatenation of {0} parts has a loop for each",
    Why.UPDATED_IN_PLACE: "it writes a small part of an array, in place",
    Why.SEVERAL_RESULTS: "a reduction with several results has a loop of its own",
    Why.NO_ROWS: "it does not reduce rows (the last dimensions, of {0} elements at most)",
    Why.NO_ROWS_ACROSS: (
        "it does not reduce rows (neighbouring dimensions, of {0} elements at most; of {1} before"
        " other ones in a large array, with enough rows for lanes and threads)"
    ),
    Why.READ_BEYOND_ROW: "{0} reads it elsewhere than in its row",
    Why.NEEDED_BY_LOOPS: "{0} loops need it: {1}",
    Why.OTHER_ROWS: "the loop of {0} runs along other rows",
    Why.NO_LANES: "{0} has elementary functions, which then run in lanes, unlike short exact sums",
    Why.NO_OTHER_LOOP: "no other loop over such rows, which lie across memory, needs it",
    Why.READ_IN_SNIPPETS: (
        "a loop of {0} over such rows would read memory in snippets, which takes longer than one"
        " more loop over so few operations"
    ),
    Why.RESULT: "it is a result of the computation",
    Why.READ_IN_MEMORY: "{0} ({1}) reads it in memory",
    Why.UNUSED: "nothing reads it",
    Why.READ_AS_BYTES: "{0} reads the bytes of its elements",
    Why.READS_WHAT_IS_UPDATED: "it reads the array that {0} updates in place",
    Why.READ_ACROSS: "each row of {0} would read it across memory, in every loop over the row",
    Why.TOO_LARGE: "the loop of {0} would have more than {1} operations",
    Why.COSTS_MORE: (
        "{0} would compute {1} elements of it instead of {2}, at {3} operations each: more than"
        " storing and loading them"
    ),
    Why.EPILOGUE: "it is what a contraction computes of its sums last",
}
_MOST_NAMES = 4


class Reason(NamedTuple):
    """Hold a reason to store a value, and the details that its text is formatted with."""

    why: Why
    details: tuple[object, ...] = ()

    @property
    def text(self) -> str:
        """Return the reason as an English clause about the value (it)."""
        return _TEXTS[self.why].format(*self.details)


@dataclass(frozen=True, slots=True)
class Group:
    """Hold a fusion group: the names of a stored instruction (the last member) and of those that
    its kernel computes for it, and the reason why it is stored.

    ``computed`` estimates how many elements of each member the loops compute: more than the member
    has where the loop reads it on several paths.
    """

    members: tuple[str, ...]
    reason: Reason
    computed: Mapping[str, float]


# By computation, and in it by the instruction whose result is in memory.
Groups = Mapping[str, Mapping[str, Group]]


def listed(names: list[str]) -> str:
    """Format instruction names as a comma-separated list, shortened after the first few."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(f"%{name}" for name in names[:_MOST_NAMES]) + more
