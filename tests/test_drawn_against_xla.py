"""Drawn programs of one instruction give what XLA gives (against_jax/drawn.py says which, and how
to try thousands of them)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

import hlo

pytest.importorskip("jaxlib")

from against_jax import drawn
from against_jax.case import SUM

from fuzz.peers.jaxlib_modules import of_hlo
from fuzz.peers.xla import XLA

_SMALL = ("convolution", "dot", "reduce", "reduce-window", "scatter", "fft")
_ANY = ("gather", "dynamic-slice", "dynamic-update-slice", "sort")
_COUNT = 12


@pytest.fixture(scope="module")
def xla() -> Iterator[XLA]:
    with XLA() as peer:
        yield peer


@pytest.mark.sampled(3)
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


_SELECT_AND_SCATTER = """HloModule m
ge {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GE
}}
sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}}
ENTRY e {{
  x = f32[4] parameter(0)
  s = f32[{size}] parameter(1)
  z = f32[] constant(0)
  ROOT r = {shape} select-and-scatter(x, s, z), window={{{window}}}, select=ge, scatter=sum
}}
"""


@pytest.mark.parametrize(
    ("window", "size"),
    [
        ("size=2", 3),
        ("size=2 lhs_dilate=2", 6),
        ("size=2 rhs_dilate=2", 2),
        ("size=4 stride=2 pad=5_1 lhs_dilate=3 rhs_dilate=3", 4),
    ],
)
def test_sources_of_dilated_windows(window: str, size: int) -> None:
    """Sizes that XLA's shape inference takes; StableHLO's op has no dilation, so what is compiled
    does not show it."""
    for tried in range(1, 9):
        without = _SELECT_AND_SCATTER.format(size=tried, window=window, shape="")
        module = hlo.parse(_SELECT_AND_SCATTER.format(size=tried, window=window, shape="f32[4]"))
        if tried == size:
            of_hlo().hlo_module_from_text(without)
            hlo.verify(module)
            continue
        with pytest.raises(RuntimeError):
            of_hlo().hlo_module_from_text(without)
        with pytest.raises(hlo.VerifyError):
            hlo.verify(module)
