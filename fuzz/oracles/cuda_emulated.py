"""Run generated CUDA on emulated thread blocks, of every size and in several orders.

Programs of one call are compiled as one unit. Undefined behaviour (a race, an access out of bounds,
a barrier that some threads do not reach) is a finding, like other bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from backend_c.ir.settings import Numerics, launched
from backend_c.native.cuda_emulation import Emulated, Schedule
from backend_c.native.emulation_findings import EmulationError
from backend_c.pipeline import emulated
from fuzz.oracles.exact import runs
from fuzz.oracles.oracle import Difference, Outcome, compared, each, right, where_defined
from fuzz.reducer.search import Case
from hlo.errors import Error, ToolchainError

SIZES = (1, 32, 96, 128, 1024)


def schedules() -> Iterator[Schedule]:
    """Yield each block size, with the threads in ascending and in another order."""
    for threads in SIZES:
        yield Schedule(threads, blocks=3, seed=0)
        yield Schedule(threads, blocks=2, seed=threads)


def cuda_emulated(cases: Sequence[Case]) -> list[Outcome]:
    """Check that emulated CUDA gives the interpreter's bits without undefined behaviour."""
    outcomes = each(runs)(cases)
    usable = [number for number, outcome in enumerate(outcomes) if outcome is None]
    try:
        modules = [cases[number].module for number in usable]
        made = emulated(modules, launched(Numerics.EXACT)) if usable else []
    except ToolchainError as error:
        if len(usable) > 1:  # which of them it is
            return [cuda_emulated([case])[0] for case in cases]
        outcomes[usable[0]] = Difference(type(error).__name__, str(error))
        return outcomes
    for number, program in zip(usable, made, strict=True):
        outcomes[number] = _outcome(cases[number], program)
    return outcomes


def fast_is_sound(cases: Sequence[Case]) -> list[Outcome]:
    """Check that emulated CUDA of fast numerics, whose bits may differ, has no undefined
    behaviour."""
    made = emulated([case.module for case in cases], launched(Numerics.FAST))
    return [_finding(case, program) for case, program in zip(cases, made, strict=True)]


def _finding(case: Case, program: Emulated) -> Outcome:
    """Run a program by every schedule; return the first finding."""
    for schedule in schedules():
        try:
            program(*case.arrays, schedule=schedule)
        except EmulationError as error:
            return Difference(error.findings[0].kind, f"fast, {schedule}: {error}")
    return None


def _outcome(case: Case, program: Emulated) -> Outcome:
    """Run a program by every schedule; return the first difference."""
    expected = right(case)
    for schedule in schedules():
        try:
            value = program(*case.arrays, schedule=schedule)
        except EmulationError as error:
            return Difference(error.findings[0].kind, f"{schedule}: {error}")
        except Error as error:
            return Difference(type(error).__name__, f"{schedule}: {error}")
        found = where_defined(compared(expected, value), case)
        if isinstance(found, Difference):
            return Difference(found.kind, f"{schedule}: {found.detail}")
        if found is not None:
            return found
    return None
