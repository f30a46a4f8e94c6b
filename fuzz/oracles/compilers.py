"""Judge another compiler's results by the error envelope; its process may crash."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from fuzz.draw.time_limit import TooLongError, time_limit
from fuzz.judge.failure import WRONG, Against, Failure, Judged, WrongStep
from fuzz.oracles.oracle import Difference, LeftOut, Outcome, Property, each, refused
from fuzz.peers.command import Command
from fuzz.peers.layouts import reads_layouts
from fuzz.peers.plugin import parsed
from fuzz.peers.xla import XLA
from fuzz.reducer.search import Case
from hlo.errors import Error, OutOfFuel, Unsupported
from interp.envelope.budget import UNKNOWN, XLA_CPU

SECONDS = 20.0  # for one program


@contextmanager
def xla(program: Callable[[Case], Case] = lambda case: case) -> Iterator[Property]:
    """Check that XLA's results for ``program(case)`` are inside the envelope, and that it neither
    crashes nor hangs."""
    with XLA(timeout=SECONDS) as run:
        judged = judging(Against(run, XLA_CPU))

        def of(cases: Sequence[Case]) -> list[Outcome]:
            return [one for case in cases for one in asked(case, program(case))]

        def asked(case: Case, other: Case) -> list[Outcome]:
            if other is not case and other.module == case.module:
                return [LeftOut("there is nothing to change")]  # so `xla` says all
            found = map(_carried, [other], judged([other]))
            return [one if other is case else _of(other, one) for one in found]

        yield of


def _carried(case: Case, outcome: Outcome) -> Outcome:
    """Ignore wrong numbers of a program that depends on layouts: StableHLO, the only way into XLA,
    drops them."""
    is_wrong = isinstance(outcome, Difference) and outcome.kind.startswith(WRONG)
    return LeftOut("depends on layouts") if is_wrong and reads_layouts(case.module) else outcome


def _of(other: Case, outcome: Outcome) -> Outcome:
    """Attach the program that was run to its difference, so that it is the one to reduce."""
    if isinstance(outcome, Difference):
        return replace(outcome, oracle="xla", case=other)
    return outcome


@contextmanager
def command(words: Sequence[str]) -> Iterator[Property]:
    """Judge any command as a compiler, by the budget of an unknown one."""
    with Command(words, SECONDS) as run:
        yield judging(Against(run, UNKNOWN), shlex.join(words))


@contextmanager
def pjrt(name: str) -> Iterator[Property]:
    """Judge a PJRT plugin, named ``pjrt:PLUGIN.so,…``, by its budget."""
    from fuzz.peers.pjrt import PJRT  # which needs pypjrt

    plugin = parsed(name)
    with PJRT(plugin, SECONDS) as run:
        yield judging(Against(run, plugin.budget), name)


def judging(against: Against, command: str | None = None) -> Property:
    """Return the property that a compiler has no failure. ``command`` runs it, if it is not XLA."""
    return each(lambda case: _failure_of(against, command, case))


def _failure_of(against: Against, command: str | None, case: Case) -> Outcome:
    failure = failure_or_outcome(against, case)
    if isinstance(failure, Failure):
        kind = f"{failure.kind}: {_first_sign(failure.signs)}"
        judged = Judged(failure, against.budget, command)
        blame = partial(_wrong_steps, against) if failure.kind == WRONG else None
        return Difference(kind, detail(failure), judged=judged, blame=blame)
    if failure is not None:
        return failure
    if against.refusal is None:
        return None
    if against.is_refused:
        return refused(against.refusal)
    reason, _, why = against.refusal.partition(": ")  # "the program means nothing: …"
    return LeftOut(reason, why)


# Of the signs of wrong numbers: what others hide comes last, so that a bug has one kind mostly.
_SIGNS = ("other types or sizes", "another number", "no NaN", "NaN")


def _first_sign(signs: frozenset[str]) -> str:
    """Return the most specific sign: programs of one bug may have several."""
    return min(signs, key=lambda sign: (_SIGNS.index(sign) if sign in _SIGNS else -1, sign))


def _wrong_steps(against: Against, case: Case) -> Sequence[WrongStep]:
    return against.wrong_steps(case.module, case.arrays)


def failure_or_outcome(against: Against, case: Case) -> Failure | LeftOut | Difference | None:
    """Return a compiler's failure; an outcome if the interpreter has no result to compare with; or
    None."""
    try:
        with time_limit(3 * SECONDS):
            return against.failure(case.module, case.arrays)
    except TooLongError:
        return LeftOut("takes too long")
    except (OutOfFuel, Unsupported) as error:
        return LeftOut(type(error).__name__)
    except Error as error:
        return Difference(type(error).__name__, str(error))


def detail(failure: Failure) -> str:
    if failure.crash is not None:
        return failure.crash.splitlines()[0][:200]
    found = failure.found
    assert found is not None
    steps = [f"%{s.instruction.name} = {s.instruction.opcode}" for s in found.wrong]
    places = [o.place for o in found.outputs if o.verdict.counts["outside"]]
    return ", ".join([*places, *steps]) or str(found.mismatch)
