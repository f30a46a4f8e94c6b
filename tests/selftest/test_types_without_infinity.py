"""Check that legal compilers are not called wrong: types without infinity, slices of
collectives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hlo
from hlo.types import ELEMENT_TYPES
from hlo.values import Array
from interp.envelope.budget import UNKNOWN, XLA_CPU, Budget
from interp.envelope.enclosure import contains
from interp.envelope.evaluation import enclose
from selftest.soundness import verdicts

# what -> the entry's instructions, its arguments
_PROGRAMS: dict[str, tuple[str, list[Array]]] = {
    "numbers beyond a type without infinity, kept in f32": (
        """
  x = f32[1] parameter(0)
  c = f6e2m3fn[1] convert(x)
  ROOT r = f32[1] convert(c)
""",
        [np.array([36], np.float32)],
    ),
    "what may be anything, of a type without infinity": (
        """
  x = f8e4m3fn[1] parameter(0)
  a = f8e4m3fn[1] atan2(x, x)
  ROOT r = f8e4m3fn[1] rsqrt(a)
""",
        [np.array([2.0**-7], ELEMENT_TYPES["f8e4m3fn"].numpy)],
    ),
    "products at one end of which a type has no number": (
        """
  x = f8e5m2fnuz[1] parameter(0)
  y = f8e5m2fnuz[1] parameter(1)
  s = f8e5m2fnuz[1] sine(x)
  ROOT m = f8e5m2fnuz[1] multiply(y, s)
""",
        [np.array([v], ELEMENT_TYPES["f8e5m2fnuz"].numpy) for v in (1.75, 40960)],
    ),
    "slices that are permuted from where they start": (
        """
  x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  z = f32[4] parameter(2)
  zero = s32[] constant(0)
  two = s32[] constant(2)
  d = f32[2] divide(x, y)
  a = f32[2] acosh(d)
  from = (s32[]) tuple(zero)
  to = (s32[]) tuple(two)
  ROOT p = f32[4] collective-permute(a, z, from, to), slice_sizes={{2}},
    source_target_pairs={{0,0}}
""",
        [np.array([3, 0.5], np.float32), np.array([3, 3], np.float32), np.zeros(4, np.float32)],
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("what", _PROGRAMS)
@pytest.mark.parametrize("budget", [XLA_CPU, UNKNOWN], ids=lambda budget: str(budget.name))
def test_what_is_legal_is_not_called_wrong(what: str, budget: Budget) -> None:
    entry, arrays = _PROGRAMS[what]
    module = hlo.parse(f"HloModule legal\nENTRY main {{{entry}}}\n")
    for seed in range(0, 24, 2):
        for how, found in verdicts(module, arrays, seed, budget):
            assert not found.counts["outside"] and not found.wrong, how


def test_what_is_kept_of_a_type_without_zero() -> None:
    """1 - 1 of f8e8m0fnu is NaN, and 0 in f32, in which XLA keeps it."""
    text = """HloModule m
ENTRY main {
  x = f32[2] parameter(0)
  y = f8e8m0fnu[2] convert(x)
  o = f8e8m0fnu[2] parameter(1)
  d = f8e8m0fnu[2] subtract(o, y)
  e = f8e8m0fnu[2] add(d, o)
  f = f32[2] convert(d)
  g = f32[2] convert(e)
  ROOT r = (f32[2], f32[2]) tuple(f, g)
}
"""
    x = np.array([1, 4], np.float32)
    ones = np.ones(2).astype(ELEMENT_TYPES["f8e8m0fnu"].numpy)
    legal: Any = enclose(hlo.parse(text), x, ones, peer=XLA_CPU).result
    kept = np.array([[0, -3], [1, -2]], np.float32)
    assert all(contains(bounds, one).all() for bounds, one in zip(legal, kept, strict=True))
