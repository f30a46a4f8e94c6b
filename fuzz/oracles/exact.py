"""Compare interpreter and C bit by bit, in any number of threads, before and after passes."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from contextlib import suppress
from functools import cache

from backend_c.ir.settings import Settings
from backend_c.native.executable import Executable
from backend_c.native.toolchain import Compiler
from backend_c.pipeline import lowered
from backend_c.render.dialect import OPENMP
from backend_c.render.translation_units import render_plan
from fuzz.compilers import quick_compilers
from fuzz.compilers.combined_programs import compiled
from fuzz.oracles.oracle import (
    Difference,
    LeftOut,
    NoResult,
    Outcome,
    compared,
    each,
    right,
    where_defined,
)
from fuzz.reducer.search import Case
from hlo.errors import Error, ToolchainError, Unsupported
from hlo.module import Module
from hlo.passes import run
from interp.values import Value

_THOROUGH = 64  # of so many lists of programs, one is compiled as programs are, but -O0


def same_bits(cases: Sequence[Case]) -> list[Outcome]:
    """Check that C gives the interpreter's bits. Many programs are compiled together by a fast
    compiler; those that differ there, and single ones, by the compiler of
    :func:`backend_c.compile`."""
    outcomes: list[Outcome] = [None] * len(cases)
    expected: dict[int, Value] = {}
    for number, case in enumerate(cases):
        try:
            expected[number] = right(case)
        except NoResult as none:
            outcomes[number] = none.outcome
    executables = _together([cases[number].module for number in expected])
    for (number, value), executable in zip(expected.items(), executables, strict=True):
        outcomes[number] = _outcome(cases[number], value, executable)
    return outcomes


def _together(modules: Sequence[Module]) -> Sequence[Executable | Error | None]:
    """Compile programs as one; empty for a single one, or if the compiler fails."""
    if len(modules) > 1:
        with suppress(ToolchainError):
            return compiled(modules, _of_many(modules))
    return [None] * len(modules)


def _of_many(modules: Sequence[Module]) -> Compiler:
    """Choose a fast compiler, and for one list in 64 the shipped one, so that vector instructions
    and warnings are covered, too."""
    quick, thorough, _ = _compilers()
    text = "".join(i.opcode for module in modules for i in module.entry.instructions)
    return quick if zlib.crc32(text.encode()) % _THOROUGH else thorough


@cache
def _compilers() -> tuple[Compiler, Compiler, Compiler]:
    thorough = quick_compilers.thorough(os.environ)
    return quick_compilers.quick(os.environ), thorough, quick_compilers.portable(thorough)


def _outcome(case: Case, expected: Value, executable: Executable | Error | None) -> Outcome:
    if isinstance(executable, Unsupported):
        return LeftOut("Unsupported")
    if isinstance(executable, Error):
        return Difference(type(executable).__name__, str(executable))
    if executable is None:
        return _alone(case, expected)
    found = where_defined(compared(expected, executable(*case.arrays)), case)
    if not isinstance(found, Difference):
        return found
    return _alone(case, expected) or LeftOut("another compiler gives the right bits")


def _alone(case: Case, expected: Value) -> Outcome:
    """Judge one program by the shipped compiler, with vector instructions and without."""
    for compiler in _compilers()[1:]:
        try:
            (executable,) = compiled([case.module], compiler)
        except ToolchainError as error:
            return Difference(type(error).__name__, str(error))
        if isinstance(executable, Error):
            return _outcome(case, expected, executable)
        found = compared(expected, executable(*case.arrays))
        if found is not None:
            return where_defined(found, case)
    return None


def threads(cases: Sequence[Case]) -> list[Outcome]:
    """Check that C in several threads, even for short loops, gives the bits of one thread."""
    outcomes: list[Outcome] = []
    usable: list[int] = []
    for number, outcome in enumerate(each(runs)(cases)):
        outcomes.append(outcome)
        usable += [number] if outcome is None else []
    chosen = [cases[number] for number in usable]
    modules = [case.module for case in chosen]
    # Not the quick compiler, which leaves OpenMP out.
    executables = compiled(modules, _compilers()[1], Settings(grain=1))
    for number, case, executable in zip(usable, chosen, executables, strict=True):
        assert isinstance(executable, Executable), executable
        one, several = (_in_threads(count, executable, case) for count in (1, 3))
        outcomes[number] = compared(one, several)
    return outcomes


def _in_threads(count: int, executable: Executable, case: Case) -> Value:
    return executable.in_threads(count)(*case.arrays)


def runs(case: Case) -> Outcome:
    """Check that the interpreter has a result, and that the C backend accepts the program."""
    right(case)
    try:
        lowered(case.module)
    except Unsupported:
        return LeftOut("Unsupported")
    return None


def twice(case: Case) -> Outcome:
    """Check that interpreting again gives the same bits, and lowering again the same C."""
    texts = []
    for _ in range(2):
        try:
            texts.append(render_plan(lowered(case.module), OPENMP).sources)
        except Unsupported:
            break
    if texts[:1] != texts[1:]:
        return Difference("another C text", "")
    return compared(right(case), right(case))


def passes(case: Case) -> Outcome:
    """Check that the passes of the C backend keep every bit, interpreted before and after."""
    return compared(right(case), right(Case(run(case.module, "backend_c"), case.arrays)))
