"""Programs with arguments, drawn from a seed: whole ones, and single instructions of every kind."""

from __future__ import annotations

from typing import Any

import hypothesis
from hypothesis import strategies as st

from fuzz.loosening import loosened
from fuzz.modules import GENERATORS, modules, single_op
from fuzz.values import arguments
from hlo.module import Module

Drawn = tuple[Module, tuple[Any, ...]]


def programs(count: int, seed: int) -> list[Drawn]:
    """``count`` of them: whole programs, single instructions of every opcode, and such with some
    dimensions bounded."""
    found: list[Drawn] = []
    single = st.sampled_from(tuple(GENERATORS)).flatmap(single_op)
    either = st.one_of(single, modules())

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(st.data(), st.one_of(either, either.flatmap(loosened)))
    def collect(data: st.DataObject, module: Module) -> None:
        found.append((module, data.draw(arguments(module))))

    collect()
    return found
