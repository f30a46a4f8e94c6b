"""Define oracles: a property of every program, asked of many programs at once."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import interp
from fuzz.judge.failure import Judged, WrongStep
from fuzz.judge.nan_bits import depends_on_them
from fuzz.judge.undefined_behaviour import undefined
from fuzz.reducer.search import Case
from hlo import bit_equality
from hlo.errors import Error, OutOfFuel, Unsupported
from interp.values import Value

# What Python raises where this project is wrong: a campaign goes on.
_DEFECTS = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, NameError),
    *(RecursionError, TypeError, ValueError),
)

_MOST_SAID = 200  # characters of a compiler's reason
FUEL = 1 << 18  # instructions of one evaluation: a loop that drawn programs end is far shorter


@dataclass(frozen=True, slots=True)
class Difference:
    """Describe a program without the property.

    ``kind`` is the same for the same defect in other programs; ``detail`` says where, with the
    expected and the actual value. ``oracle`` names a faster one that finds the same, for smaller
    programs; ``case`` is the derived program to give it, if it is not this one. ``judged`` is the
    evidence for a report on another compiler. ``text`` replaces the program if that is no program.
    ``blame`` returns the wrong steps of a program, the first one to blame, as far as they can be
    observed.
    """

    kind: str
    detail: str
    oracle: str = ""
    case: Case | None = None
    judged: Judged | None = None
    text: HostileText | None = None
    blame: Callable[[Case], Sequence[WrongStep]] | None = None


@dataclass(frozen=True, slots=True)
class HostileText:
    """Hold a text that is no program and breaks a reader. ``breaks(shorter)`` tests whether another
    breaks it in the same way."""

    text: str
    breaks: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The outcome of a program to which the property does not apply, with the reason. ``said`` is
    what a compiler said that refuses it, which differs from program to program."""

    reason: str
    said: str = field(default="", compare=False)


Outcome = Difference | LeftOut | None  # None: the program has the property
Property = Callable[[Sequence[Case]], list[Outcome]]  # an outcome for each case, in order
Opener = Callable[[], AbstractContextManager[Property]]


@dataclass(frozen=True, slots=True)
class Oracle:
    """Hold a property, its name, and a line that states it. ``open`` is a context manager, as it
    may hold processes. ``runs_c``: it may crash this process (:mod:`fuzz.oracles.isolation`).
    ``together``: many programs are asked at once, as they are compiled as one, or otherwise than a
    single one is."""

    name: str
    about: str
    open: Opener
    runs_c: bool = True
    together: bool = False


def refused(error: str) -> LeftOut:
    """Leave out a program that a compiler refuses with an error, of which the first line is
    kept."""
    lines = (line.strip() for line in error.splitlines())
    return LeftOut("refused", next(filter(None, lines), "")[:_MOST_SAID])


class NoResult(Exception):
    """Raised when the interpreter has no result; ``outcome`` is what that means for the
    property."""

    def __init__(self, outcome: Difference | LeftOut) -> None:
        super().__init__(str(outcome))
        self.outcome = outcome


def right(case: Case) -> Value:
    """Evaluate a program with the interpreter; raise NoResult if it has no result."""
    try:
        return interp.evaluate(case.module, *case.arrays, fuel=FUEL)
    except (OutOfFuel, Unsupported) as error:
        raise NoResult(LeftOut(type(error).__name__)) from error
    except Error as error:  # of what is valid
        raise NoResult(Difference(type(error).__name__, str(error))) from error


def compared(expected: Value, actual: Value) -> Difference | None:
    """Return the difference of results that must have the same bits, None if they do."""
    found = bit_equality.differences(expected, actual)
    if not found:
        return None
    kind = "another type or shape" if found[0].first is None else "other bits"
    return Difference(kind, str(found[0]))


def where_defined(outcome: Outcome, case: Case) -> Outcome:
    """Ignore a difference if the program is undefined for its arguments, or if the result depends
    on the payload of a computed NaN."""
    if not isinstance(outcome, Difference):
        return outcome
    if undefined(case.module, case.arrays) is not None:
        return LeftOut("undefined")
    if depends_on_them(case.module, case.arrays):
        return LeftOut("depends on the bits of a NaN")
    return outcome


def each(outcome: Callable[[Case], Outcome]) -> Property:
    """Lift a function of one program to a property of many; a defect of this project in it is a
    difference like any other."""

    def of(case: Case) -> Outcome:
        try:
            return outcome(case)
        except NoResult as none:
            return none.outcome
        except _DEFECTS as error:  # of ours, and found like any other
            place = traceback.extract_tb(error.__traceback__)[-1]
            kind = f"defect: {Path(place.filename).name}:{place.name}"
            return Difference(kind, f"line {place.lineno}: {type(error).__name__}: {error}")

    return lambda cases: [of(case) for case in cases]


def stateless(name: str, about: str, of: Property, *, together: bool = False) -> Oracle:
    """Return an oracle whose property needs no resources."""
    return Oracle(name, about, lambda: nullcontext(of), together=together)
