"""The oracles by name."""

from __future__ import annotations

from fuzz.oracles import exact, language
from fuzz.oracles.oracle import Oracle, each

_ALL = (
    Oracle("same-bits", "interpreter and C give the same bits", exact.same_bits),
    Oracle("printed", "printed and read again, it is the same program", each(language.printed)),
    Oracle("shapes", "each value has the shape that is declared", each(language.shapes)),
    Oracle(
        "twice", "run again, it gives the same bits; lowered again, the same C", each(exact.twice)
    ),
    Oracle(
        "constants", "with its arguments as constants it gives the same bits", each(exact.constants)
    ),
    Oracle("passes", "the passes of the C backend keep every bit", each(exact.passes)),
    Oracle(
        "rewrites",
        "an equivalent program gives the same bits, interpreted and as C",
        exact.rewritings,
    ),
)
ORACLES = {oracle.name: oracle for oracle in _ALL}
