"""Which instructions are the epilogue of a contraction; fusion with them keeps every bit."""

import numpy as np
import pytest

import hlo
import interp
from hlo.bit_equality import differences
from hlo.passes import run
from hlo.passes.epilogues import epilogues
from hlo.passes.updates_in_place import ANY_PART

_HEAD = """HloModule m
add { a = s32[] parameter(0)
      b = s32[] parameter(1)
      ROOT r = s32[] add(a, b) }
ENTRY e {
  x = s8[4,6] parameter(0)
  y = s8[4,6] parameter(1)
  t = s32[4,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}
"""
PROGRAMS = {
    # What is narrowest is the end, of several the last one; what follows has it in memory.
    "narrowed": (
        """half = s16[4,4] convert(t)
  low = s8[4,4] convert(half)
  same = s8[4,4] negate(low)
  wide = s32[4,4] convert(same)
  ROOT r = s32[4,4] add(wide, wide)""",
        {"t": "same", "half": "same", "low": "same", "same": "same"},
    ),
    "used twice": (
        """low = s8[4,4] convert(t)
  bits = s8[4,4] not(low)
  both = s8[4,4] add(low, bits)
  ROOT r = (s8[4,4], s8[4,4]) tuple(both, bits)""",
        {"t": "low", "low": "low"},
    ),
    "also read as it is": (
        """low = s8[4,4] convert(t)
  ROOT r = (s8[4,4], s32[4,4]) tuple(low, t)""",
        {},
    ),
    "moved": ("ROOT r = s32[4,4] transpose(t), dimensions={1,0}", {}),
    # The later one of two has what is computed of both.
    "two meet": (
        """u = s32[4,4] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  v = s32[4,4] negate(t)
  w = s32[4,4] add(u, v)
  ROOT r = s32[4,4] multiply(w, w)""",
        {"u": "r", "w": "r", "r": "r", "t": "v", "v": "v"},
    ),
    # A reduction of rows would run the contraction by rows.
    "beside a reduction": (
        """zero = s32[] constant(0)
  wide = s32[4,6] convert(x)
  sums = s32[4] reduce(wide, zero), dimensions={1}, to_apply=add
  each = s32[4,4] broadcast(sums), dimensions={0}
  ROOT r = s32[4,4] add(t, each)""",
        {"t": "r", "r": "r"},
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_epilogues(name: str) -> None:
    body, expected = PROGRAMS[name]
    module = hlo.parse(f"{_HEAD}  {body}\n}}\n")
    assert epilogues(module.entry, ANY_PART) == expected
    draw = np.random.default_rng(0)
    arrays = [draw.integers(-128, 128, (4, 6)).astype(np.int8) for _ in range(2)]
    fused = run(module, "backend_c_scalar")
    hlo.verify(fused)
    assert not differences(interp.evaluate(module, *arrays), interp.evaluate(fused, *arrays))
    alone = [i for i in fused.entry.instructions if i.opcode == "dot"]
    dots = {i.name for i in module.entry.instructions if i.opcode == "dot"}
    assert len(alone) == len(dots - expected.keys())
