"""Run generated C in every compiler configuration of this machine and compare the bits.

The programs of one call are built as one, in the configuration that a hash of their texts chooses,
so a campaign goes through all configurations. A single program is tried in each, or in the one that
is named (``configurations: gcc -O3 AVX2``), which is how findings are reduced.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

import hlo
import interp
from backend_c.render.dialect import EMBEDDED
from fuzz.compilers.combined_programs import merged
from fuzz.compilers.configurations import Configuration, configurations
from fuzz.compilers.trial import Trial, outcome, unequal
from fuzz.draw.time_limit import TooLongError, time_limit
from fuzz.oracles.exact import runs
from fuzz.oracles.oracle import FUEL, Difference, LeftOut, Outcome, Property, each, where_defined
from fuzz.reducer.search import Case
from hlo.errors import ArgumentError, Error, ToolchainError
from hlo.types import leaves

_SECONDS = 20.0  # for the interpreter with one program
_PREFIX = "configurations: "
_MOST_PARAMETERS = 125  # C99, 5.2.4.1: a compiler takes 127, of which two are workspace and seed
# What is the same of a defect in all programs: the sanitizer's or the compiler's name for it.
_NAMES = re.compile(r"(?:ERROR|WARNING): \w+: [\w-]+|runtime error: [a-z ]+|\[-W[\w=+-]+\]")


@contextmanager
def same_bits(is_chosen: Callable[[Configuration], bool]) -> Iterator[Property]:
    """Check that C gives the interpreter's bits, and that neither compiler nor sanitizer
    complains."""
    chosen = [*filter(is_chosen, present())]
    if not chosen:
        raise ArgumentError("no such configuration here: see python -m selftest.compiler_matrix")
    yield lambda cases: _asked(cases, chosen)


@cache
def present() -> tuple[Configuration, ...]:
    """Return the configurations that this machine has."""
    return tuple(c for c in configurations(os.environ) if isinstance(c, Configuration))


def unsanitized(configuration: Configuration) -> bool:
    """Return whether a configuration has no sanitizer."""
    return not configuration.is_sanitizer


def sanitized(configuration: Configuration) -> bool:
    """Return whether a configuration has a sanitizer."""
    return configuration.is_sanitizer


def _asked(cases: Sequence[Case], chosen: Sequence[Configuration]) -> list[Outcome]:
    outcomes = each(_usable)(cases)
    usable = [number for number, outcome in enumerate(outcomes) if outcome is None]
    if len(usable) == 1:
        outcomes[usable[0]] = _alone(cases[usable[0]], chosen)
        return outcomes
    configuration = chosen[_digest(cases) % len(chosen)]
    for numbers in _built_as_one(usable, cases, configuration):
        together = _wrong([cases[number] for number in numbers], configuration)
        if not isinstance(together, Difference):
            continue
        for number in numbers:
            outcomes[number] = _alone(cases[number], [configuration])
        if all(outcomes[number] is None for number in numbers):
            # All are right alone. The first has to stand for them: which of them matter is not
            # known.
            outcomes[numbers[0]] = replace(together, kind=f"{together.kind}, only together")
    return outcomes


def _built_as_one(
    usable: Sequence[int], cases: Sequence[Case], configuration: Configuration
) -> Iterator[Sequence[int]]:
    """Group programs to build as one: all of them, or as many as fit into the parameters of one
    function of the embedded target."""
    is_limited = configuration.target == EMBEDDED.name
    taken, parameters = list[int](), 0
    for number in usable:
        own = _parameters(cases[number].module) if is_limited else 0
        if taken and parameters + own > _MOST_PARAMETERS:
            yield taken
            taken, parameters = [], 0
        taken.append(number)
        parameters += own
    if taken:
        yield taken


def _parameters(module: hlo.Module) -> int:
    """Count a program's array arguments and results, and the sizes of bounded ones."""
    shapes = [p.shape for p in module.entry.parameters] + [module.entry.root_instruction.shape]
    return sum(1 + any(leaf.dynamic) for shape in shapes for leaf in leaves(shape))


def _usable(case: Case) -> Outcome:
    try:
        with time_limit(_SECONDS):
            return runs(case)
    except TooLongError:
        return LeftOut("takes too long")


def _digest(cases: Sequence[Case]) -> int:
    found = hashlib.sha256()
    for case in cases:
        found.update(hlo.format(case.module).encode())
    return int.from_bytes(found.digest()[:8])


def _alone(case: Case, chosen: Sequence[Configuration]) -> Outcome:
    for configuration in chosen:
        found = _wrong([case], configuration)
        if isinstance(found, Difference):
            return where_defined(found, case)
    return None


def _wrong(cases: Sequence[Case], configuration: Configuration) -> Outcome:
    """Find the defects of programs that are built as one. What this project raises is one of them:
    no other process is between it and the campaign."""

    def of(_: Case) -> Outcome:
        try:
            return _compared(cases, configuration)
        except ToolchainError:  # of this machine, whatever the programs are
            raise
        except Error as error:
            return Difference(type(error).__name__, str(error), part_name(configuration))

    (found,) = each(of)(cases[:1])
    return found


def _compared(cases: Sequence[Case], configuration: Configuration) -> Difference | None:
    module = cases[0].module if len(cases) == 1 else merged([case.module for case in cases])
    arrays = tuple(array for case in cases for array in case.arrays)
    expected = interp.evaluate(module, *arrays, fuel=FUEL * len(cases))
    trial = Trial("together", module, arrays, expected)
    found = outcome(trial, configuration)
    difference = unequal(trial, configuration, found)
    detail = found.finding or difference
    if not detail:
        return None
    kind = kind_of(configuration, found.finding, difference)
    return Difference(kind, detail, part_name(configuration))


def kind_of(configuration: Configuration, finding: str, difference: str) -> str:
    """Name a defect by its configuration and the part of its message that does not depend on the
    program."""
    name = _NAMES.search(finding or difference)
    what = name[0].strip() if name else "no result" if finding else "other bits"
    return f"{configuration.name}: {what}"


def part_name(configuration: Configuration) -> str:
    """Return the name of the oracle for a single configuration."""
    return f"{_PREFIX}{configuration.name}"
