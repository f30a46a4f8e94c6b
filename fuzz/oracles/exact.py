"""Interpreter and C: the same bits, whatever is a parameter and whatever a constant."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import backend_c
import hlo
from backend_c.dialect import OPENMP
from backend_c.nest import GRAIN
from backend_c.pipeline import lowered
from backend_c.program import program
from fuzz.nan_bits import depends_on_them
from fuzz.oracles.oracle import Difference, LeftOut, NoResult, Outcome, compared, each, right
from fuzz.oracles.rewrites import REWRITES, rewritten
from fuzz.reducer.search import Case, Value
from fuzz.together import compiled, merged
from hlo.errors import Error, Unsupported
from hlo.literal import Literal
from hlo.module import Instruction, Module
from hlo.passes import run
from hlo.types import ArrayShape


def same_bits(cases: Sequence[Case]) -> list[Outcome]:
    """Compiled as one program; what differs there is asked alone, too."""
    outcomes: list[Outcome] = [None] * len(cases)
    expected: dict[int, Value] = {}
    for number, case in enumerate(cases):
        try:
            expected[number] = right(case)
        except NoResult as none:
            outcomes[number] = none.outcome
    try:
        together = _together([cases[number] for number in expected])
    except Error:
        together = [None] * len(expected)
    for (number, value), actual in zip(expected.items(), together, strict=True):
        if actual is None or compared(value, actual) is not None:
            outcomes[number] = _alone(cases[number], value)
    return outcomes


def _together(
    cases: Sequence[Case], grain: int = GRAIN, threads: int | None = None
) -> Sequence[Value | None]:
    executable = compiled(merged([case.module for case in cases]), grain, threads)
    results: Sequence[Value | None] = executable(*(x for case in cases for x in case.arrays))
    return results


def threads(cases: Sequence[Case]) -> list[Outcome]:
    """With threads for every loop, however short, the bits are those of one thread."""
    outcomes: list[Outcome] = []
    usable: list[int] = []
    for number, outcome in enumerate(each(runs)(cases)):
        outcomes.append(outcome)
        usable += [number] if outcome is None else []
    chosen = [cases[number] for number in usable]
    one, several = (_together(chosen, 1, count) for count in (1, 3))
    for number, first, second in zip(usable, one, several, strict=True):
        assert first is not None and second is not None
        outcomes[number] = compared(first, second)
    return outcomes


def runs(case: Case) -> Outcome:
    """Whether it ends, and whether C takes it."""
    right(case)
    try:
        lowered(case.module)
    except Unsupported:
        return LeftOut("Unsupported")
    return None


def _alone(case: Case, expected: Value) -> Outcome:
    try:
        executable = backend_c.compile(case.module, numerics="exact")
    except Unsupported:
        return LeftOut("Unsupported")
    except Error as error:
        return Difference(type(error).__name__, str(error))
    found = compared(expected, executable(*case.arrays))
    if found is not None and depends_on_them(case.module, case.arrays):
        return LeftOut("depends on the bits of a NaN")
    return found


def twice(case: Case) -> Outcome:
    """Interpreted again, it gives the same bits; lowered again, the same C."""
    texts = []
    for _ in range(2):
        try:
            texts.append(program(lowered(case.module), OPENMP).sources)
        except Unsupported:
            break
    if texts[:1] != texts[1:]:
        return Difference("another C text", "")
    return compared(right(case), right(case))


def passes(case: Case) -> Outcome:
    """After the passes of the C backend it means what it meant before, to the interpreter."""
    return compared(right(case), right(Case(run(case.module, "backend_c"), case.arrays)))


def rewritings(cases: Sequence[Case]) -> list[Outcome]:
    """An equivalent program gives the same bits, interpreted and as C: see
    :mod:`fuzz.oracles.rewrites`."""
    others = [*map(_otherwise, cases)]
    outcomes = same_bits([other for other, _ in others])
    for number, (case, (other, name)) in enumerate(zip(cases, others, strict=True)):
        found = outcomes[number]
        if found is None:  # so both have results
            found = compared(right(case), right(other))
        if isinstance(found, Difference):
            found = Difference(f"{name}: {found.kind}", found.detail)
        outcomes[number] = found
    return outcomes


def _otherwise(case: Case) -> tuple[Case, str]:
    """By one rewrite, always the same."""
    rng = random.Random(hashlib.sha256(hlo.format(case.module).encode()).digest())
    name = rng.choice(sorted(REWRITES))
    module = rewritten(case.module, name, rng)
    return (case if module is None else Case(module, case.arrays)), name


def constants(case: Case) -> Outcome:
    """A program with its arguments as constants gives the same bits."""
    return compared(right(case), right(_baked(case)))


def _baked(case: Case) -> Case:
    """Arrays as constants; tuples and what is bounded stay parameters."""
    entry = case.module.entry
    constant = [
        isinstance(p.shape, ArrayShape) and not p.shape.is_dynamic for p in entry.parameters
    ]
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
    return Case(_with_entry(case.module, instructions), arrays)


def _with_entry(module: Module, instructions: tuple[Instruction, ...]) -> Module:
    entry = replace(module.entry, instructions=instructions)
    others = [entry if c is module.entry else c for c in module.computations]
    return replace(module, computations=tuple(others), attributes={}, text="", preamble="")
