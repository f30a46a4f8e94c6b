"""Draw programs with arguments from a seed: whole ones, single ops of every opcode, and rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

from fuzz.draw.choices import Choices, Seeded
from fuzz.draw.loosening import loosened
from fuzz.draw.programs import GENERATORS, program, rows, single_op
from fuzz.draw.values import arguments
from hlo.module import Module

Drawn = tuple[Module, tuple[Any, ...]]

_EACH = 4  # programs for an opcode at a time


def programs(seed: int, first: int = 0) -> Iterator[Drawn]:
    """Draw programs without end, from the one of number ``first`` on: whole ones, single
    instructions of one opcode after the other, and rows about as long as vectors; of half of the
    first two some dimensions are bounded."""
    for bits, opcode in islice(_seeds(seed), first, None):
        yield _drawn(Seeded(bits), opcode)


def _seeds(seed: int) -> Iterator[tuple[int, str]]:
    """Yield each program's seed, and the opcode for a program of a single instruction."""
    rng = random.Random(seed)
    opcodes = list(GENERATORS)
    while True:
        rng.shuffle(opcodes)
        for opcode in opcodes:
            for _ in range(_EACH):
                yield rng.getrandbits(64), opcode


def _drawn(choices: Choices, opcode: str) -> Drawn:
    if choices.chance(3):
        module = rows(choices)
        return module, arguments(choices, module)
    module = single_op(choices, opcode) if choices.boolean() else program(choices)
    if choices.boolean():
        module = loosened(choices, module)
    return module, arguments(choices, module)
