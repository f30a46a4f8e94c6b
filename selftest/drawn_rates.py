"""Measure how much drawn programs can show: how many have elements, and how telling those are.

``python -m selftest.drawn_rates --programs N --seed S`` draws programs with arguments as campaigns
draw them and prints rates: programs and constants without elements, arguments whose elements hardly
differ (data moved to a wrong place looks right in them), exponents of floats, special values; and
how many programs with elements have each pattern (:mod:`fuzz.draw.patterns`), the rarest first, and
the rarest pairs of a reader and what made its operand. A generator that drifts to programs that
show little is not wrong; this is how it is seen. Exit status: 1 if a pattern is in less than one
program with elements in 140.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from fuzz.campaign.program_kinds import any_program
from fuzz.draw.even_choices import EvenlySpread
from fuzz.draw.patterns import PATTERNS
from fuzz.draw.patterns.producers import PRODUCERS, READERS
from fuzz.draw.values import arguments
from fuzz.reducer.search import Case
from hlo.literal import Literal
from hlo.module import Instruction, Module
from hlo.types import PRED, ArrayShape, leaves
from hlo.values import Array, arrays_of
from interp.values import Value

_NEAR_ONE = 8  # binary orders of magnitude
_FEW = 2  # different numbers
_RAREST = 10  # pairs that are printed
_LEAST = 1 / 140  # of programs with elements have a pattern
_MOST = 0.9  # of as many as there are elements, or as the type has

# What is counted, of what: a line of the table each.
RATES = (
    ("programs without an element in any result", "programs"),
    ("programs with an empty value somewhere", "programs"),
    ("programs with NaN, inf, a subnormal or an end of a range", "programs"),
    ("constants without elements", "constants"),
    ("arguments of at most 2 distinct values", "arguments of several elements"),
    ("arguments of distinct values, nine in ten at least", "arguments of several elements"),
    ("f32 elements of magnitude 2^-8 to 2^8", "f32 elements"),
    ("f64 elements of magnitude 2^-8 to 2^8", "f64 elements"),
    ("f32 elements below 2^-64 or above 2^64", "f32 elements"),
    ("f64 elements below 2^-512 or above 2^512", "f64 elements"),
)


def measured(programs: int, seed: int) -> Counter[str]:
    """Count over ``programs`` drawn ones: the quantities of ``RATES``, and patterns by name."""
    found = Counter[str]()
    for number in range(programs):
        choices = EvenlySpread(str(seed), number)
        module = any_program(choices)
        case = Case(module, arguments(choices, module))
        found.update(_of_program(case))
        if _has_elements(module):
            found.update(choices.drawn.keys())
        shapes = [leaf for p in case.module.entry.parameters for leaf in leaves(p.shape)]
        for shape, array in zip(shapes, arrays_of(case.arrays), strict=True):
            found.update(_of_argument(shape, array))
    return found


def _of_program(case: Case) -> Iterator[str]:
    yield "programs"
    if not _has_elements(case.module):
        yield "programs without an element in any result"
    if any(not leaf.elements for i in _instructions(case.module) for leaf in leaves(i.shape)):
        yield "programs with an empty value somewhere"
    constants = [*_constants(case.module)]
    if any(map(_is_special, (*constants, *arrays_of(case.arrays)))):
        yield "programs with NaN, inf, a subnormal or an end of a range"
    for constant in constants:
        yield "constants"
        if not constant.size:
            yield "constants without elements"


def _has_elements(module: Module) -> bool:
    return any(leaf.elements for leaf in leaves(module.entry.root_instruction.shape))


def _instructions(module: Module) -> Iterator[Instruction]:
    return (i for computation in module.computations for i in computation.instructions)


def _constants(module: Module) -> Iterator[Array]:
    for instruction in _instructions(module):
        literal = instruction.attributes.get("literal")
        if isinstance(literal, Literal):
            yield from arrays_of(literal.value)


def _of_argument(shape: ArrayShape, array: Array) -> Iterator[str]:
    """Classify an argument. Pred has only two values, so its arrays count as neither kind."""
    yield from _magnitudes(array)
    if array.size <= _FEW or shape.element_type is PRED:
        return
    yield "arguments of several elements"
    bits = np.ascontiguousarray(array).reshape(-1).view(f"V{array.dtype.itemsize}")
    different = len(set(bits.tolist()))
    if different <= _FEW:
        yield "arguments of at most 2 distinct values"
    if different >= _MOST * min(array.size, 2**shape.element_type.bits):
        yield "arguments of distinct values, nine in ten at least"


def _magnitudes(array: Array) -> Iterator[str]:
    if array.dtype.char not in "fd":
        return
    name, far = ("f32", 64) if array.dtype.char == "f" else ("f64", 512)
    with np.errstate(invalid="ignore"):  # signalling NaN
        _, exponents = np.frexp(array)
    finite = np.isfinite(array) & (array != 0)
    near = finite & (np.abs(exponents) <= _NEAR_ONE)
    extreme = finite & (np.abs(exponents) > far)
    yield from (f"{name} elements",) * array.size
    yield from (f"{name} elements of magnitude 2^-8 to 2^8",) * int(near.sum())
    yield from (f"{name} elements below 2^-{far} or above 2^{far}",) * int(extreme.sum())


def _is_special(value: Value) -> bool:
    """Test for a NaN, an infinity, a subnormal, or an end of an integer type's range."""
    array = np.asarray(value)
    if array.dtype.isbuiltin != 1 or array.dtype.kind == "b":
        return False  # a type that NumPy does not know, or one without ends
    if array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        ends = (limits.max,) if array.dtype.kind == "u" else (limits.min, limits.max)
        return bool(np.isin(array, ends).any())
    if array.dtype.kind == "c":
        return _is_special(array.real) or _is_special(array.imag)
    tiny = np.finfo(array.dtype).smallest_normal
    return bool((~np.isfinite(array) | ((array != 0) & (np.abs(array) < tiny))).any())


def table(found: Counter[str]) -> Iterator[str]:
    """Format the rates, a line each."""
    for what, of in RATES:
        yield f"{found[what] / max(1, found[of]):7.1%}  {what} (of {found[of]:,} {of})"


def patterns(found: Counter[str]) -> dict[str, float]:
    """Compute the share of programs with elements that have each pattern."""
    programs = found["programs"] - found["programs without an element in any result"]
    return {name: found[name] / max(1, programs) for name in PATTERNS}


def _pattern_table(found: Counter[str]) -> Iterator[str]:
    for name, share in sorted(patterns(found).items(), key=lambda one: one[1]):
        yield f"{share:7.2%}  {name} ({found[name]:,} programs)"
    pairs = {
        f"{reader} of {made}": found[f"{reader} of {made}"]
        for reader in READERS
        for made in PRODUCERS
    }
    yield f"{len(pairs)} pairs of a reader and what made its operand; the rarest:"
    for pair in sorted(pairs, key=pairs.__getitem__)[:_RAREST]:
        yield f"{pairs[pair]:7,}  {pair}"


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m selftest.drawn_rates", description=__doc__)
    parser.add_argument("--programs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(words)
    found = measured(given.programs, given.seed)
    for line in (*table(found), *_pattern_table(found)):
        print(line)
    return int(min(patterns(found).values()) < _LEAST)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
