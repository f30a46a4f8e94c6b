"""Choose flags with which a compiler gives all known answers: those as shipped, if possible.

One that does not build the questions loses what it may not have (a library for threads, patience
with our warnings); one that gets answers wrong loses optimisations, what costs least first.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from backend_c.native.cache import Cache, noted, take_note
from backend_c.native.generator_digest import generator_digest
from backend_c.native.toolchain import Compiler, digest, identity, takes
from backend_c.probe import trial
from backend_c.probe.questions import Question, questions
from backend_c.probe.trial import Failure
from hlo.errors import CompilerWarning, ToolchainError

Ask = Callable[[Compiler], Failure | None]


@dataclass(frozen=True, slots=True)
class Step:
    """Change the shipped flags: replace or remove some, and add ``more``."""

    change: Mapping[str, str | None]
    more: tuple[str, ...] = ()

    def flags(self, shipped: Sequence[str]) -> tuple[str, ...]:
        changed = (self.change.get(flag, flag) for flag in shipped)
        return (*(flag for flag in changed if flag is not None), *self.more)


_NO_WIDTH = {"-mprefer-vector-width=512": None}
_LEAST = {"-march=native": None, **_NO_WIDTH, "-fopenmp": None}
_QUIET = "-Wno-unknown-pragmas"
TO_BUILD = (
    Step({}),
    Step({"-Werror": None}, ("-w",)),
    Step({"-fopenmp": None}, (_QUIET,)),
    Step({"-fopenmp": None, "-Werror": None}, ("-w",)),
)
# Tuned for no one processor gcc makes no gathers; AVX2 has half of the registers of AVX-512 and
# other instructions; without a vectoriser there are vectors of intrinsics alone.
TO_BE_RIGHT = (
    Step({}),
    Step({}, ("-mtune=generic",)),
    Step({"-march=native": "-march=x86-64-v3", **_NO_WIDTH}),
    Step({}, ("-fno-tree-vectorize",)),
    Step({}, ("-fno-vectorize", "-fno-slp-vectorize")),
    Step({"-march=native": "-march=x86-64-v2", **_NO_WIDTH}),
    Step({"-O3": "-O2"}),
    Step({"-O3": "-O1"}),
    Step({**_LEAST, "-O3": "-O1"}, (_QUIET,)),
    Step({**_LEAST, "-O3": "-O0"}, (_QUIET,)),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Hold the indices, in TO_BUILD and TO_BE_RIGHT, of the steps whose flags give all answers.

    ``right`` is None if there are none. ``why`` is the failure with the shipped flags, or empty.
    """

    build: int = 0
    right: int | None = 0
    why: str = ""


def trusted(compiler: Compiler, cache: Cache, asked: Sequence[Question] | None = None) -> Compiler:
    """Return the compiler with flags that give all known answers.

    ``asked`` are all questions by default. They are asked once for each command, version, list of
    flags, processor and text of this package, which has the questions, too; then the cache knows.
    Warns with a CompilerWarning if flags are not those as shipped; raises ToolchainError if none
    are right.
    """
    names = ["all"] if asked is None else [question.name for question in asked]
    key = digest([*identity(compiler), generator_digest(cache), *names])
    note = noted(cache, key)
    if note is None:
        files = trial.sources(tuple(questions()) if asked is None else asked)
        verdict = search(compiler, lambda other: trial.failure(other, files, cache))
        take_note(cache, key, json.dumps((verdict.build, verdict.right, verdict.why)))
    else:
        verdict = Verdict(*json.loads(note))
    return _sentenced(compiler, verdict, f"kept in {cache.directory / key}.note")


def search(compiler: Compiler, ask: Ask) -> Verdict:
    """Try the steps in order until ``ask`` returns no failure; return the verdict."""
    found = ask(compiler)
    if found is None:
        return Verdict()
    why = f"{found.told} with {_telling(compiler.flags)}"
    built, build = compiler, 0
    for number, step in enumerate(TO_BUILD):
        other = replace(compiler, flags=step.flags(compiler.flags))
        if found.is_built or other == compiler:
            continue
        built, build, found = other, number, ask(other)
        if found is None:
            return Verdict(build, 0, why)
    if not found.is_built:
        return Verdict(build, None, why)
    for number, step in enumerate(TO_BE_RIGHT):
        other = replace(built, flags=step.flags(built.flags))
        if other != built and takes(other.command, other.flags) and ask(other) is None:
            return Verdict(build, number, why)
    return Verdict(build, None, why)


def _sentenced(compiler: Compiler, verdict: Verdict, known: str) -> Compiler:
    if not verdict.why:
        return compiler
    why = f"{compiler.version.splitlines()[0]} {verdict.why}"
    if verdict.right is None:
        raise ToolchainError(
            f"{why}, nor is it right with other flags ({known}): name another in HLO_CC"
        )
    flags = TO_BE_RIGHT[verdict.right].flags(TO_BUILD[verdict.build].flags(compiler.flags))
    line = f"{why}: libraries are compiled with {_telling(flags)} instead ({known})"
    warnings.warn(line, CompilerWarning, stacklevel=4)
    return replace(compiler, flags=flags, instead=line)


def _telling(flags: Sequence[str]) -> str:
    """Join the flags that matter in a message: optimisation and processor."""
    kept = [f for f in flags if f.startswith(("-O", "-m", "-fopenmp", "-fno-tree", "-fno-", "-w"))]
    return " ".join(kept) or "no flags"
