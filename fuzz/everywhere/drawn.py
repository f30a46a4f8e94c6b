"""Programs with arguments, drawn from a seed: whole ones, and single instructions of every kind."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import hypothesis
from hypothesis import strategies as st

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
    found: list[Drawn] = []
    either = st.one_of(single_op(opcode), modules())

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=_AT_ONCE,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(st.data(), st.one_of(either, either.flatmap(loosened)))
    def collect(data: st.DataObject, module: Module) -> None:
        found.append((module, data.draw(arguments(module))))

    collect()
    return found[1:]
