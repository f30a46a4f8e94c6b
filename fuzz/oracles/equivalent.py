"""Define metamorphic oracles: equivalent programs give the same bits."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

import hlo
from fuzz.oracles.exact import same_bits
from fuzz.oracles.oracle import (
    Difference,
    NoResult,
    Outcome,
    Property,
    compared,
    each,
    right,
    where_defined,
)
from fuzz.reducer.search import Case
from fuzz.rewrites import fitting, rewritten
from hlo.literal import Literal
from hlo.module import Instruction
from hlo.passes.rewriting import with_entry
from hlo.types import ArrayShape

_PREFIX = "rewrites: "
_PLACES = 8  # of one rewrite, that are tried in one program


def constants(cases: Sequence[Case]) -> list[Outcome]:
    """Check that a program with its arguments as constants gives the same bits, interpreted and as
    C."""
    return _beside(cases, [*map(baked, cases)])


def rewritings(cases: Sequence[Case]) -> list[Outcome]:
    """Check that an equivalent program gives the same bits, interpreted and as C: see
    :mod:`fuzz.rewrites`."""
    others = [*map(_otherwise, cases)]
    outcomes = _beside(cases, [other for other, _ in others])
    return [_of(name, outcome) for (_, name), outcome in zip(others, outcomes, strict=True)]


def by_one(name: str) -> Property:
    """Return the property that one rewrite, at several places of a program, keeps every bit."""

    def of(case: Case) -> Outcome:
        # A reduction changes the text, by which :func:`rewritings` chose the place: so several are
        # tried.
        places = (rewritten(case.module, name, random.Random(n)) for n in range(_PLACES))
        texts = {hlo.format(module): module for module in places if module is not None}
        others = [Case(module, case.arrays) for module in texts.values()]
        outcomes = [_of(name, one) for one in _beside([case] * len(others), others)]
        wrong = (one for one in outcomes if isinstance(one, Difference))
        return next(wrong, outcomes[0] if outcomes else None)

    return each(of)


def _of(name: str, outcome: Outcome) -> Outcome:
    if not isinstance(outcome, Difference):
        return outcome
    return Difference(f"{name}: {outcome.kind}", outcome.detail, f"{_PREFIX}{name}")


def _beside(cases: Sequence[Case], others: Sequence[Case]) -> list[Outcome]:
    outcomes = same_bits(others)
    for number, (case, other) in enumerate(zip(cases, others, strict=True)):
        found = outcomes[number]
        try:
            if found is None:  # so the other has a result
                found = compared(right(case), right(other))
        except NoResult as none:
            found = none.outcome
        outcomes[number] = where_defined(found, other)
    return outcomes


def for_xla(case: Case) -> Case:
    """Rewrite a program and drop its layouts, which StableHLO does not carry."""
    return _otherwise(case, ("layout", "lie otherwise"))[0]


def _otherwise(case: Case, without: Collection[str] = ()) -> tuple[Case, str]:
    """Rewrite a program by one fitting rewrite, chosen by the program's text; also return its
    name."""
    rng = random.Random(hashlib.sha256(hlo.format(case.module).encode()).digest())
    name = fitting(case.module, rng, without)
    if name is None:
        return case, "none"
    module = rewritten(case.module, name, rng)
    assert module is not None
    return Case(module, case.arrays), name


def baked(case: Case) -> Case:
    """Turn array arguments into constants; tuples and bounded arrays stay parameters."""
    entry = case.module.entry
    constant = [
        isinstance(p.shape, ArrayShape) and not p.shape.is_dynamic for p in entry.parameters
    ]
    # The new number of each parameter that stays, where ``constant`` is False.
    numbers = np.cumsum([not one for one in constant]) - 1

    def changed(instruction: Instruction) -> Instruction:
        if instruction.opcode != "parameter":
            return instruction
        number = int(str(instruction.attributes["parameter_number"]))
        if not constant[number]:
            attributes = {**instruction.attributes, "parameter_number": int(numbers[number])}
            return instruction._replace(attributes=attributes)
        assert isinstance(instruction.shape, ArrayShape)
        value = np.array(case.arrays[number], order="C")
        value.flags.writeable = False
        literal = Literal(instruction.shape, value)
        return instruction._replace(opcode="constant", attributes={"literal": literal})

    instructions = tuple(map(changed, entry.instructions))
    arrays = tuple(x for x, gone in zip(case.arrays, constant, strict=True) if not gone)
    return Case(with_entry(case.module, replace(entry, instructions=instructions)), arrays)
