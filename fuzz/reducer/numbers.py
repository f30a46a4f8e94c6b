"""Simplify numbers in arguments and constants to 0, 1 and small integers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from fuzz.reducer.search import Case
from hlo.literal import Literal
from hlo.module import Module
from hlo.values import Array
from interp.exact.conversion import type_of
from interp.exact.sums import is_minus_zero
from interp.values import Value

Change = Callable[[Array], Iterator[Array]]

_EVERYDAY = (3, 10, 100, 0.5, 1000)  # in place of what nobody writes down
SMALL, LARGE = 1e-4, 1e6  # of what people write down
_STRANGE = 8  # characters that a number is worth which nobody writes down
_SINGLY = 32  # elements: more are changed in runs only
_RUNS = 16


def simpler_numbers(case: Case) -> Iterator[Case]:
    """Propose cases with one array's numbers simplified."""
    for n, value in enumerate(case.arrays):
        for simpler in _within(value):
            yield Case(case.module, (*case.arrays[:n], simpler, *case.arrays[n + 1 :]))
    for module in _simpler_constants(case.module):
        yield Case(module, case.arrays)


def _within(value: Value) -> Iterator[Value]:
    if isinstance(value, tuple):
        for n, part in enumerate(value):
            for simpler in _within(part):
                yield (*value[:n], simpler, *value[n + 1 :])
    elif value is not None:
        yield from _simpler(value)


def _simpler_constants(module: Module) -> Iterator[Module]:
    for c, computation in enumerate(module.computations):
        for n, instruction in enumerate(computation.instructions):
            literal = instruction.attributes.get("literal")
            if not isinstance(literal, Literal) or not isinstance(literal.value, np.ndarray):
                continue
            for value in _simpler(literal.value):
                new = instruction._replace(attributes={"literal": Literal(literal.shape, value)})
                listed = (*computation.instructions[:n], new, *computation.instructions[n + 1 :])
                changed = replace(computation, instructions=listed)
                computations = (*module.computations[:c], changed, *module.computations[c + 1 :])
                yield replace(module, computations=computations)


def _simpler(array: Array) -> Iterator[Array]:
    """Propose arrays of the same shape with lower complexity."""
    before = complexity(array)
    for candidate in _candidates(array):
        if complexity(candidate) < before:
            yield candidate


def _candidates(array: Array) -> Iterator[Array]:
    with np.errstate(all="ignore"):
        yield np.zeros_like(array)
        yield np.ones_like(array)
        size = array.size
        counted = np.arange(size) % 8 + 1
        yield counted.reshape(array.shape).astype(array.dtype)
        if array.dtype.kind != "b":
            wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
            yield np.rint(wide).astype(array.dtype)
            yield np.clip(np.rint(wide.real), -4, 4).astype(array.dtype)
        yield from _everyday(array)
        for first, last in _runs(size):
            for number in (0, 1, 2):
                changed = array.reshape(-1).copy()
                changed[first:last] = np.asarray(number).astype(array.dtype)
                yield changed.reshape(array.shape)
        if size <= _SINGLY:
            yield from _rounded(array)


def _everyday(array: Array) -> Iterator[Array]:
    """Propose arrays with everyday numbers instead of very large and very small ones: all at once,
    then one by one."""
    if array.dtype.kind in "bc" or not array.size:
        return
    flat = array.reshape(-1)
    wide = flat.astype(np.float64)
    strange = np.isfinite(wide) & _is_strange(wide)
    places = [strange, *(np.arange(array.size) == n for n in np.flatnonzero(strange)[:_SINGLY])]
    for chosen in places if strange.any() else ():
        for number in _EVERYDAY:
            changed = np.where(chosen, np.copysign(number, wide), wide).astype(array.dtype)
            yield np.where(chosen, changed, flat).reshape(array.shape)


def _is_strange(numbers: Array) -> Array:
    size = np.abs(numbers)
    return np.asarray((size != 0) & ~((size >= SMALL) & (size <= LARGE)))


def _runs(size: int) -> Iterator[tuple[int, int]]:
    """Yield halves, quarters, … of a range and, of short ranges, single elements."""
    length = size // 2
    while length >= 1 and (size <= _SINGLY or size // length <= _RUNS):
        for first in range(0, size, length):
            yield first, min(first + length, size)
        length //= 2
    if size == 1:
        yield 0, 1


def _rounded(array: Array) -> Iterator[Array]:
    """Propose arrays with one element rounded to a shorter number."""
    for n, element in enumerate(array.reshape(-1)):
        if array.dtype.kind == "c" or not np.isfinite(np.float64(element)):
            continue
        for digits in (1, 2, 3):
            changed = array.reshape(-1).copy()
            number = float(f"{float(element):.{digits}g}")
            changed[n] = np.asarray(number).astype(array.dtype)
            yield changed.reshape(array.shape)


def complexity(array: Array) -> int:
    """Measure how long an array is to read: 0 for zeros, 1 for ones, else the length of its
    numbers. A zero with a sign is not simple."""
    values = array.reshape(-1)
    zeros = np.asarray(values == np.zeros((), array.dtype))
    negative = _has_negative_zero(values)
    ones = np.asarray(values == np.ones((), array.dtype)) & ~negative
    rest = values[~(zeros & ~negative) & ~ones]
    if len(rest) > 256:  # of many numbers, how many there are
        return int(ones.sum()) + 20 * len(rest)
    return int(ones.sum()) + sum(1 + _length(x) for x in rest)


def _has_negative_zero(values: Array) -> Array:
    if values.dtype.kind == "c":
        return _has_negative_zero(values.real) | _has_negative_zero(values.imag)
    if not type_of(values).is_float:
        return np.zeros(values.shape, np.bool_)
    return is_minus_zero(values)


def _length(element: Any) -> int:
    length = len(str(element).strip("()").removesuffix(".0").replace(".0e", "e"))
    return length + _STRANGE * bool(_is_strange(np.asarray(element, np.complex128)))
