"""Discs: a function moves by no more than its bound, wherever in the discs its operands are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from interp.envelope.complex_discs import SPREADS

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan2": lambda y, x: -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y)),
    "atanh": np.arctanh,
    "log": np.log,
    "power": lambda base, exponent: np.exp(exponent * np.log(base)),
    "sqrt": np.sqrt,
    "tanh": np.tanh,
}


@pytest.mark.parametrize("opcode", _FUNCTIONS)
def test_nothing_moves_by_more_than_its_bound(opcode: str) -> None:
    rng = np.random.default_rng(0)
    function, known = _FUNCTIONS[opcode], 0
    for _ in range(300):
        discs = [
            (complex(*rng.normal(0, 2, 2)), float(10 ** rng.uniform(-4, 0)))
            for _ in range(2 if opcode in ("atan2", "power") else 1)
        ]
        given = [(np.asarray(z), np.asarray(r)) for z, r in discs]
        with np.errstate(all="ignore"):
            bound = float(SPREADS[opcode](*given))
            turns = np.exp(1j * rng.uniform(0, 2 * np.pi, (len(discs), 64)))
            parts = np.sqrt(rng.uniform(0, 1, (len(discs), 64)))
            points = [z + r * turn * part for (z, r), turn, part in zip(discs, turns, parts)]
            moved = np.abs(function(*points) - function(*(z for z, _ in discs)))
        if np.isfinite(bound):
            known += 1
            assert moved.max() <= bound * (1 + 1e-9) + 1e-12
    assert known > 60


_OF_ANY_SIZE: dict[str, Callable[..., Any]] = {
    **{opcode: _FUNCTIONS[opcode] for opcode in ("acosh", "asinh", "log", "sqrt", "tanh")},
    "abs": np.abs,
    "divide": np.divide,
    "exponential": np.exp,
    "multiply": np.multiply,
    "rsqrt": lambda z: 1 / np.sqrt(z),
    "sign": lambda z: z / 2 / np.abs(z / 2),
}


@pytest.mark.parametrize("opcode", _OF_ANY_SIZE)
def test_discs_of_any_size(opcode: str) -> None:
    """Squares and products of what is near the ends of float64's range overflow."""
    rng = np.random.default_rng(1)
    function, known = _OF_ANY_SIZE[opcode], 0
    for _ in range(300):
        discs = []
        for _ in range(2 if opcode in ("divide", "multiply") else 1):
            z = complex(*(rng.uniform(0.5, 1.79, 2) * rng.choice([-1, 1], 2)))
            z *= float(10.0 ** rng.integers(-300, 309))
            discs.append((z, abs(z / 2) * 2.0 * float(10 ** rng.uniform(-3, -1))))
        given = [(np.asarray(z), np.asarray(r)) for z, r in discs]
        with np.errstate(all="ignore"):
            bound = float(SPREADS[opcode](*given))
            turns = np.exp(1j * rng.uniform(0, 2 * np.pi, (len(discs), 64)))
            values = function(*(z + r * turn for (z, r), turn in zip(discs, turns)))
            middle = function(*(z for z, _ in discs))
            moved = np.abs(values - middle)
        if np.isfinite(bound) and np.isfinite(moved).all():
            known += 1
            own = 1e-12 * np.abs(middle) + 1e-321  # of the function here; of subnormals
            assert moved.max() <= bound * (1 + 1e-9) + own, discs
    assert known > 60
