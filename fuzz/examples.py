"""Examples outside of a test: for campaigns, and for programs that are compiled together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import hypothesis
from hypothesis import strategies as st

T = TypeVar("T")


def examples(draw: Callable[[st.DataObject], T], count: int, seed: int | str) -> list[T]:
    """What ``draw(data)`` gives, at most ``count`` times; the same for a seed in one version of
    this project (Hypothesis draws numbers from its source, too). The first is the simplest."""
    found: list[T] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(st.data())
    def collect(data: st.DataObject) -> None:
        found.append(draw(data))

    collect()
    return found
