"""Programs with arguments, drawn from a seed: whole ones, and single instructions of every kind."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from fuzz.examples import examples
from fuzz.loosening import loosened
from fuzz.modules import GENERATORS, modules, single_op
from fuzz.values import arguments
from hlo.module import Module

Drawn = tuple[Module, tuple[Any, ...]]

# Of so many Hypothesis makes none by changing an earlier one; the first is always the simplest.
_AT_ONCE = 5


def programs(seed: int) -> Iterator[Drawn]:
    """Without end: whole programs, and single instructions of one opcode after the other; of half
    of them some dimensions are bounded."""
    rng = random.Random(seed)
    opcodes = list(GENERATORS)
    while True:
        rng.shuffle(opcodes)
        for opcode in opcodes:
            yield from _some(opcode, rng.getrandbits(64))


def _some(opcode: str, seed: int) -> list[Drawn]:
    either = st.one_of(single_op(opcode), modules())

    def program(data: st.DataObject) -> Drawn:
        module = data.draw(st.one_of(either, either.flatmap(loosened)))
        return module, data.draw(arguments(module))

    return examples(program, _AT_ONCE, seed)[1:]
