"""Drawn programs of one instruction give what XLA gives (against_jax/drawn.py says which, and how
to try thousands of them)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

pytest.importorskip("jaxlib")

from against_jax import drawn
from against_jax.case import SUM

from fuzz.peers.xla import XLA

_SMALL = ("convolution", "dot", "reduce", "reduce-window", "scatter", "fft")
_ANY = ("gather", "dynamic-slice", "dynamic-update-slice", "sort")
_COUNT = 12


@pytest.fixture(scope="module")
def xla() -> Iterator[XLA]:
    with XLA() as peer:
        yield peer


@pytest.mark.parametrize(
    ("opcode", "values"), [(o, "small") for o in _SMALL] + [(o, "any") for o in _ANY]
)
def test_the_same_results(opcode: str, values: str, xla: XLA) -> None:
    programs = drawn.programs(opcode, _COUNT, seed=1, values=values)
    kinds = Counter[str]()
    for finding in drawn.compared(programs, SUM, xla):
        kinds[finding.kind if finding else "equal"] += 1
        if finding is not None and finding.kind in ("differs", "ours refused"):
            pytest.fail(f"{finding.what}\n{finding.text}")
    assert kinds["equal"] > _COUNT // 3, kinds
