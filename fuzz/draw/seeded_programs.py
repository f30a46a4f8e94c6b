"""Draw programs with arguments from a seed: whole ones, and single ops of every opcode."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from fuzz.draw.choices import Choices, Seeded
from fuzz.draw.loosening import loosened
from fuzz.draw.programs import GENERATORS, program, single_op
from fuzz.draw.values import arguments
from hlo.module import Module

Drawn = tuple[Module, tuple[Any, ...]]

_EACH = 4  # programs for an opcode at a time


def programs(seed: int) -> Iterator[Drawn]:
    """Without end: whole programs, and single instructions of one opcode after the other; of half
    of them some dimensions are bounded."""
    rng = random.Random(seed)
    opcodes = list(GENERATORS)
    while True:
        rng.shuffle(opcodes)
        for opcode in opcodes:
            for _ in range(_EACH):
                yield _drawn(Seeded(rng.getrandbits(64)), opcode)


def _drawn(choices: Choices, opcode: str) -> Drawn:
    module = single_op(choices, opcode) if choices.boolean() else program(choices)
    if choices.boolean():
        module = loosened(choices, module)
    return module, arguments(choices, module)
