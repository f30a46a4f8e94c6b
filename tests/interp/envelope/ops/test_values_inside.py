"""An elementwise rule encloses the exact result of whatever numbers its operands may be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuzz.draw.generators.elementwise import ALIKE
from hlo.types import ELEMENT_TYPES, PRED, ArrayShape, ElementType
from hlo.values import Array
from hlo.walk import column, function_name
from interp.envelope.budget import EXACT, UNKNOWN, XLA_CPU, Budget, using
from interp.envelope.enclosure import Enclosure, contains, is_nan

COUNT = 100  # elements of each operand
RULES, OPS = column("interp.envelope.ops"), column("interp.ops")
_PARTS = {"c64": ELEMENT_TYPES["f32"], "c128": ELEMENT_TYPES["f64"]}
_NUMBERS = (0, 0.25, 0.5, 1e-3, 0.999, 1, 1.001, 1.5, 2, 3, np.pi / 2, np.pi, 10, 11, 88, 700, 1e4)
_FAR = (1e30, 1e300, 1.2e-38, 1e-45, 1e-310, np.inf)
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def _numbers(element_type: ElementType, rng: np.random.Generator) -> Array:
    """List numbers of a type, or all of a narrow one, from the least to the greatest."""
    word = _WORDS[element_type.numpy.itemsize]
    if element_type.bits <= 8:
        numbers = np.arange(1 << element_type.bits, dtype=np.uint8).view(element_type.numpy)
    else:
        drawn = rng.integers(0, np.iinfo(word).max, 80, dtype=word).view(element_type.numpy)
        known = np.array([*_NUMBERS, *_FAR, *rng.standard_normal(30)])
        if element_type.is_integer:
            known = known[np.abs(known) < 100]
        with np.errstate(all="ignore"):
            known = np.concatenate([known, -known]).astype(element_type.numpy)
        numbers = np.concatenate([known, drawn])
    if element_type.is_float:
        with np.errstate(invalid="ignore"):
            numbers = numbers[~is_nan(numbers)]
        return numbers[np.lexsort((~np.signbit(numbers), numbers.astype(np.float64)))]
    return np.sort(numbers.astype(object)).astype(element_type.numpy)


def _intervals(element_type: ElementType, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Draw low ends, numbers inside, and high ends; two in five intervals are narrow."""
    if element_type.is_complex:
        parts = [_intervals(_PARTS[element_type.name], rng) for _ in range(2)]
        real, imag = (np.stack(part) for part in parts)
        found = np.empty(real.shape, element_type.numpy)
        found.real, found.imag = real, imag
        return found[0], found[1], found[2]
    numbers = _numbers(element_type, rng)
    places = np.sort(rng.integers(0, len(numbers), (3, COUNT)), axis=0)
    beside = places[1] + rng.integers(0, 4, (3, COUNT)) * [[-1], [0], [1]]
    is_narrow = rng.random(COUNT) < 0.4
    low, inside, high = np.where(is_narrow, np.clip(beside, 0, len(numbers) - 1), places)
    return numbers[low], numbers[inside], numbers[high]


NUMBERS = [name for name, t in ELEMENT_TYPES.items() if t.is_array and t is not PRED]
CASES = [
    (name, opcode)
    for opcode, (types, _) in sorted(ALIKE.items())
    for name in NUMBERS
    if types(ELEMENT_TYPES[name])
]
Operands = list[tuple[Array, Array, Array]]
BUDGETS = pytest.mark.parametrize(
    "budget", [EXACT, XLA_CPU, UNKNOWN], ids=lambda budget: budget.name
)


def _check(opcode: str, operands: Operands, budget: Budget, **attributes: Any) -> None:
    """Compare an op's exact result of the numbers inside with the rule's of the intervals."""
    name = function_name(opcode)
    ends = [Enclosure(low, high, np.zeros(COUNT, np.bool_)) for low, _, high in operands]
    with using(budget), np.errstate(all="ignore"):
        exact = OPS[name].function(*(inside for _, inside, _ in operands), **attributes)
        legal = RULES[name].function(*ends, **attributes)
        wrong = np.flatnonzero(~contains(legal, exact))
    for place in wrong[:1]:
        shown = [tuple(end[place] for end in operand) for operand in operands]
        found = legal.low[place], legal.high[place], legal.nan[place]
        told = f"{opcode} {attributes} of {operands[0][0].dtype} {shown}: {exact[place]}"
        pytest.fail(f"{told} is not in {found} ({len(wrong)} in all)")


@pytest.mark.sampled(45)
@BUDGETS
@pytest.mark.parametrize("opcode", sorted(ALIKE))
def test_operands_of_one_type(opcode: str, budget: Budget) -> None:
    for number, (kind, other) in enumerate(CASES):
        if other == opcode:
            rng = np.random.default_rng(number)
            operands = [_intervals(ELEMENT_TYPES[kind], rng) for _ in range(ALIKE[opcode][1])]
            _check(opcode, operands, budget)


@BUDGETS
@pytest.mark.parametrize("name", NUMBERS)
def test_convert(name: str, budget: Budget) -> None:
    for number, other in enumerate(t for t in ELEMENT_TYPES.values() if t.is_array):
        operand = _intervals(ELEMENT_TYPES[name], np.random.default_rng(number))
        _check("convert", [operand], budget, shape=ArrayShape(other, (COUNT,)))


@BUDGETS
@pytest.mark.parametrize("name", [n for n in NUMBERS if ELEMENT_TYPES[n].is_float])
def test_reduce_precision(name: str, budget: Budget) -> None:
    for exponent, mantissa in ((5, 2), (8, 7), (4, 3), (5, 10), (2, 1), (3, 0)):
        operand = _intervals(ELEMENT_TYPES[name], np.random.default_rng(mantissa))
        bits = {"exponent_bits": exponent, "mantissa_bits": mantissa}
        _check("reduce-precision", [operand], budget, **bits)


@BUDGETS
@pytest.mark.parametrize("name", [n for n in NUMBERS if not ELEMENT_TYPES[n].is_complex])
def test_comparisons_and_clamp(name: str, budget: Budget) -> None:
    rng = np.random.default_rng(0)
    operands = [_intervals(ELEMENT_TYPES[name], rng) for _ in range(3)]
    _check("clamp", operands, budget)
    for direction in ("EQ", "NE", "LT", "LE", "GT", "GE"):
        _check("compare", operands[:2], budget, direction=direction)
        if ELEMENT_TYPES[name].is_float:
            _check("compare", operands[:2], budget, direction=direction, type="TOTALORDER")
