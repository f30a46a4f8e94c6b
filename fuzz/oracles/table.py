"""The oracles by name."""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import partial

from fuzz.oracles import accepted, compilers, everywhere, exact, language, optimised
from fuzz.oracles.oracle import Oracle, each, plain

_ALL = (
    plain("same-bits", "interpreter and C give the same bits", exact.same_bits),
    plain("threads", "C gives the same bits in one thread and in several", exact.threads),
    Oracle(
        "configurations",
        "C gives the interpreter's bits by every compiler, with every flag",
        partial(everywhere.opened, everywhere.plain),
        runs_c=False,
    ),
    Oracle(
        "sanitized",
        "no sanitizer has anything to say of C, and the bits are the same",
        partial(everywhere.opened, everywhere.sanitized),
        runs_c=False,
    ),
    plain("printed", "printed and read again, it is the same program", each(language.printed)),
    plain("shapes", "each value has the shape that is declared", each(language.shapes)),
    plain(
        "twice", "run again, it gives the same bits; lowered again, the same C", each(exact.twice)
    ),
    plain("constants", "with constants for its arguments it gives the same", each(exact.constants)),
    plain("passes", "the passes of the C backend keep every bit", each(exact.passes)),
    plain("rewrites", "an equivalent program gives the same bits, also as C", exact.rewritings),
    Oracle(
        "xla",
        "XLA gives nothing outside of the envelope, and survives",
        compilers.xla,
        runs_c=False,
    ),
    Oracle(
        "xla-optimised",
        "what XLA makes of it means the same, within the envelope",
        optimised.xla_optimised,
        runs_c=False,
    ),
    Oracle(
        "xla-accepts",
        "XLA reads what is valid, refuses what is not, and dies of neither",
        accepted.xla_accepts,
        runs_c=False,
    ),
)
ORACLES = {oracle.name: oracle for oracle in _ALL}


def is_known(name: str) -> bool:
    """Whether it is an oracle's name, or one's of a single configuration of this machine."""
    return name in ORACLES or any(everywhere.is_named(name, one) for one in everywhere.present())


def named(name: str) -> Oracle:
    """An oracle by its name, or ``configurations: `` and the name of one; any other name is that of
    a command: :mod:`fuzz.peers.command`."""
    if name in ORACLES:
        return ORACLES[name]
    if name.startswith(everywhere.PREFIX):
        opened = partial(everywhere.opened, partial(everywhere.is_named, name))
        return replace(ORACLES["configurations"], name=name, opened=opened)
    asked = partial(compilers.command, shlex.split(name))
    return Oracle(name, "gives nothing outside of the envelope, and survives", asked, runs_c=False)
