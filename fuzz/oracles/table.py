"""List the oracles by name."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

from fuzz.oracles import (
    acceptance,
    compilers,
    configurations,
    cuda,
    cuda_emulated,
    equivalent,
    exact,
    language,
    optimisation_passes,
    optimised,
    parsing,
)
from fuzz.oracles.oracle import Opener, Oracle, each, stateless
from fuzz.peers.plugin import is_plugin
from fuzz.rewrites import REWRITES

_ALL = (
    stateless("same-bits", "interpreter and C give the same bits", exact.same_bits, together=True),
    stateless(
        "threads",
        "C gives the same bits in one thread and in several",
        exact.threads,
        together=True,
    ),
    Oracle(
        "configurations",
        "C gives the interpreter's bits by every compiler, with every flag",
        partial(configurations.same_bits, configurations.unsanitized),
        runs_c=False,
        together=True,
    ),
    Oracle(
        "sanitized",
        "no sanitizer has anything to say of C, and the bits are the same",
        partial(configurations.same_bits, configurations.sanitized),
        runs_c=False,
        together=True,
    ),
    stateless(
        "cuda-emulated",
        "CUDA on emulated threads gives the interpreter's bits, without races",
        cuda_emulated.cuda_emulated,
        together=True,
    ),
    Oracle(
        "cuda",
        "CUDA on the first GPU gives the interpreter's bits, twice",
        cuda.on_first_gpu,
        together=True,
    ),
    stateless("printed", "printed and read again, it is the same program", each(language.printed)),
    stateless("shapes", "each value has the shape that is declared", each(language.shapes)),
    stateless(
        "twice", "run again, it gives the same bits; lowered again, the same C", each(exact.twice)
    ),
    stateless(
        "constants",
        "with constants for its arguments it gives the same",
        equivalent.constants,
        together=True,
    ),
    stateless("passes", "the passes of the C backend keep every bit", each(exact.passes)),
    stateless(
        "rewrites",
        "an equivalent program gives the same bits, also as C",
        equivalent.rewritings,
        together=True,
    ),
    Oracle(
        "xla",
        "XLA gives nothing outside of the envelope, and survives",
        compilers.xla,
        runs_c=False,
    ),
    Oracle(
        "xla-constants",
        "the same of XLA with constants for the arguments",
        partial(compilers.xla, equivalent.baked),
        runs_c=False,
    ),
    Oracle(
        "xla-rewrites",
        "the same of XLA with an equivalent program",
        partial(compilers.xla, equivalent.for_xla),
        runs_c=False,
    ),
    Oracle(
        "xla-flags",
        "XLA gives the same without one of its passes, but for roundings",
        optimisation_passes.without_each,
        runs_c=False,
        together=True,
    ),
    Oracle(
        "xla-parses",
        "XLA's parser dies of no text that is nearly a program",
        parsing.xla_parses,
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
        acceptance.xla_accepts,
        runs_c=False,
    ),
)
ORACLES = {oracle.name: oracle for oracle in _ALL}


def is_known(name: str) -> bool:
    """Return whether a name is that of an oracle, or of a part of one on this machine."""
    return name in ORACLES or is_plugin(name) or _part(name) is not None


def named(name: str) -> Oracle:
    """Return the oracle of a name: of the table, or a part of one (``configurations: gcc -O3
    AVX2``, ``rewrites: peel``), a plugin ``pjrt:PLUGIN.so`` (:mod:`fuzz.peers.plugin`), or else a
    command (:mod:`fuzz.peers.command`)."""
    found = ORACLES.get(name) or _part(name)
    if found is not None:
        return found
    if is_plugin(name):
        asked = partial(compilers.pjrt, name)
    else:
        asked = partial(compilers.command, shlex.split(name))
    return Oracle(name, "gives nothing outside of the envelope, and survives", asked, runs_c=False)


def _part(name: str) -> Oracle | None:
    whole, _, part = name.partition(": ")
    opener = _PARTS[whole](part) if whole in _PARTS and part else None
    return None if opener is None else replace(ORACLES[whole], name=name, open=opener)


def _configuration(name: str) -> Opener | None:
    found = [one for one in configurations.present() if one.name == name]
    return partial(configurations.same_bits, found.__contains__) if found else None


def _rewrite(name: str) -> Opener | None:
    return (lambda: nullcontext(equivalent.by_one(name))) if name in REWRITES else None


def _pass(name: str) -> Opener | None:
    is_known = name in optimisation_passes.PASSES
    return partial(optimisation_passes.without_each, [name]) if is_known else None


_PARTS: dict[str, Callable[[str], Opener | None]] = {
    "configurations": _configuration,
    "rewrites": _rewrite,
    "xla-flags": _pass,
}
