"""``python -m selftest.uncertain_operands``: enclosures of one instruction hold what is inside.

In drawn programs of one instruction some elements of the arguments may be any number of an
interval, others, and all NaN, are certain. The interpreter's exact result of numbers inside must be
in the enclosure of the program's result, whatever the budget. Programs that mean nothing for the
numbers, or whose result the language leaves open, are left out. With ``--compilers N`` so must be
what N legal compilers of each budget (:mod:`selftest.legal_compilers.compiler`) make of these
numbers. Prints what is not enclosed, with the seed; the exit status is 1 if anything is not.

In campaigns (:mod:`selftest.soundness`) operands are uncertain only after other instructions.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import hlo
import interp
from fuzz.draw.choices import Seeded
from fuzz.draw.programs import GENERATORS, single_op
from fuzz.draw.values import arguments
from fuzz.judge.nan_bits import depends_on_them
from fuzz.judge.undefined_behaviour import left_open, undefined
from hlo.errors import Error, Unsupported
from hlo.opcodes import EFFECT, having
from hlo.values import Array, arrays_of
from interp.envelope.budget import EXACT, UNKNOWN, XLA_CPU, Budget
from interp.envelope.enclosure import Enclosure, contains, is_nan, point
from interp.envelope.evaluation import enclose
from interp.exact.conversion import type_of
from interp.values import Value
from selftest.legal_compilers.compiler import Perturbed
from selftest.legal_compilers.errors import MODES

BUDGETS = (EXACT, XLA_CPU, UNKNOWN)
OPCODES = tuple(sorted(set(GENERATORS) - having(EFFECT)))
_ELEMENTS = 64  # of an array, at most


@dataclass(frozen=True, slots=True)
class Escape:
    """An element of a legal result that is not enclosed; ``how`` names the budget, and the
    compiler if there is one."""

    module: hlo.Module
    seed: str
    how: str
    element: str

    def __str__(self) -> str:
        return f"{hlo.format(self.module)}\nseed {self.seed!r}, {self.how}: {self.element}"


def escapes(opcode: str, seed: int, compilers: int = 0) -> Iterator[Escape]:
    """Draw a program of an opcode, and yield an element of each result that is not enclosed: of the
    exact one, and of those of some compilers of each budget."""
    name = f"{opcode} {seed}"
    module = single_op(Seeded(name), opcode, max_elements=_ELEMENTS)
    inside, *others = (arguments(Seeded(f"{name} {n}"), module) for n in range(3))
    rng = np.random.default_rng(seed)
    around = [_around(rng, *each) for each in zip(inside, *others, strict=True)]
    arrays = list(arrays_of(inside))
    try:
        exact = interp.evaluate(module, *inside)
    except Error:  # such as a size below 0
        return
    if undefined(module, arrays) or left_open(module, arrays) or depends_on_them(module, arrays):
        return
    for budget in BUDGETS:
        try:
            legal = enclose(module, *around, peer=budget).result
        except Unsupported:  # of an uncertain size
            return
        for how, results in (("", exact), *_perturbed(module, inside, budget, seed, compilers)):
            for result, enclosure in zip(arrays_of(results), arrays_of(legal), strict=True):
                element = _not_enclosed(np.asarray(result), enclosure)
                if element is not None:
                    yield Escape(module, name, budget.name + how, element)


def _perturbed(
    module: hlo.Module, inside: Sequence[Value], budget: Budget, seed: int, compilers: int
) -> Iterator[tuple[str, Value]]:
    """Yield the results of some legal compilers of a budget, each with a description of it."""
    if budget is EXACT:  # it has one
        return
    for number in range(compilers):
        mode = MODES[(seed + number) % len(MODES)]
        compiler = Perturbed(budget, seed * compilers + number, mode)
        with np.errstate(all="ignore"):
            yield f", compiler {number}, {mode}", compiler(module, *inside)


def _around(rng: np.random.Generator, inside: Any, *others: Any) -> Any:
    """Enclose an argument: by itself, or by the extremes of three where all are numbers."""
    if isinstance(inside, tuple):
        return tuple(_around(rng, *each) for each in zip(inside, *others, strict=True))
    if any(other.shape != inside.shape for other in others):  # of bounded arrays
        return point(inside)
    element_type = type_of(inside)
    drawn = (inside, *others)
    # Indices and sizes that may be anything say little.
    is_certain = rng.random(inside.shape) < (0.5 if element_type.is_inexact else 0.8)
    nan = np.zeros(inside.shape, np.bool_)
    if element_type.is_inexact:
        with np.errstate(invalid="ignore"):
            nan = is_nan(inside)
            is_certain |= np.logical_or.reduce([is_nan(one) for one in drawn])
    low, high = np.copy(inside), np.copy(inside)
    if element_type.is_complex:
        low.real, high.real = _extremes([one.real for one in drawn])
        low.imag, high.imag = _extremes([one.imag for one in drawn])
    else:
        low, high = _extremes(drawn)
    return Enclosure(np.where(is_certain, inside, low), np.where(is_certain, inside, high), nan)


def _extremes(drawn: Sequence[Array]) -> tuple[Array, Array]:
    """Return the least and the greatest of each element; −0 is less than 0."""
    low = high = drawn[0]
    is_signed = type_of(low).is_float
    for one in drawn[1:]:
        with np.errstate(invalid="ignore"):
            is_less, is_more = one < low, one > high
            if is_signed:
                is_less |= (one == low) & np.signbit(one)
                is_more |= (one == high) & ~np.signbit(one)
        low, high = np.where(is_less, one, low), np.where(is_more, one, high)
    return low, high


def _not_enclosed(result: Array, enclosure: Enclosure) -> str | None:
    """Describe the first element of a result that is not enclosed; None if there is none."""
    with np.errstate(all="ignore"):
        wrong = np.argwhere(~contains(enclosure, result))
    if not len(wrong):
        return None
    place = tuple(map(int, wrong[0]))
    ends = f"{enclosure.low[place]} to {enclosure.high[place]}"
    nan = " or NaN" if enclosure.nan[place] else ""
    return f"{list(place)} is {result[place]}, not {ends}{nan} ({len(wrong)} in all)"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m selftest.uncertain_operands",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("opcodes", nargs="*", default=OPCODES, help="all, if none is given")
    parser.add_argument("--programs", type=int, default=20, help="of each opcode")
    parser.add_argument("--seed", type=int, default=0, help="of the first")
    parser.add_argument("--compilers", type=int, default=0, help="perturbed ones of each budget")
    given = parser.parse_args(words)
    status = 0
    for opcode in given.opcodes:
        for seed in range(given.seed, given.seed + given.programs):
            for found in escapes(opcode, seed, given.compilers):
                print(found)
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
