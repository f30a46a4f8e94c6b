"""A compiler's branch is followed where its selector may choose it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hlo
from interp.envelope.budget import XLA_CPU
from interp.envelope.enclosure import Enclosure
from interp.envelope.evaluation import enclose

_BRANCHES = hlo.parse("""HloModule m
one { a = f32[] parameter(0)
  ROOT r = f32[] constant(1) }
two { a = f32[] parameter(0)
  ROOT r = f32[] constant(2) }
three { a = f32[] parameter(0)
  ROOT r = f32[] constant(3) }
ENTRY e {
  n = s32[] parameter(0)
  x = f32[] constant(0)
  ROOT r = f32[] conditional(n, x, x, x), branch_computations={one, two, three}
}
""")


class _Chooses:
    """A watcher that knows nothing but the branch that was taken."""

    def __init__(self, number: int) -> None:
        self._number = number

    def branch(self, *place: object) -> int:
        return self._number

    def __getattr__(self, name: str) -> Any:
        return lambda *given: None


@pytest.mark.parametrize(
    ("low", "high", "taken", "legal"),
    [
        (0, 1, 1, [2, 2]),
        (0, 1, 2, [1, 2]),  # a branch that nothing chooses is not followed
        (-1, 0, 0, [1, 1]),
        (-1, 0, 2, [3, 3]),  # out of range: the last one
        (-1, 0, 1, [1, 3]),
        (1, 9, 2, [3, 3]),
        (3, 9, 2, [3, 3]),
        (1, 9, 7, [2, 3]),
    ],
)
def test_an_open_selector(low: int, high: int, taken: int, legal: list[float]) -> None:
    selector = Enclosure(*map(np.asarray, map(np.int32, (low, high))), np.asarray(np.False_))
    watcher: Any = _Chooses(taken)
    found = enclose(_BRANCHES, selector, peer=XLA_CPU, watcher=watcher).result
    assert [found.low, found.high] == legal
