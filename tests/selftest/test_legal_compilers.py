"""Programs that a legal compiler runs in ways that were called wrong once."""

import numpy as np
import pytest

import hlo
from hlo.types import BF16, ELEMENT_TYPES
from interp.envelope.budget import UNKNOWN, XLA_CPU, Budget
from interp.envelope.enclosure import contains
from interp.envelope.evaluation import enclose
from selftest.soundness import verdicts

_F8 = ELEMENT_TYPES["f8e4m3fn"]
_ADD = """add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
"""
_LEAST = """least {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT m = f32[] minimum(x, y)
}
"""
_FIRST = """first {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT c = pred[] compare(x, y), direction=GE
}
"""
_SUMS = """sums {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  e = f32[] add(a, c)
  f = f32[] add(b, d)
  ROOT t = (f32[], f32[]) tuple(e, f)
}
"""

# what -> the computations, the entry's instructions, its arguments
_PROGRAMS = {
    "what a peer shows of a narrow value that it keeps": (
        "",
        """
  x = f32[5] parameter(0)
  c = f16[5] convert(x)
  e = f16[5] exponential(c)
  o = f16[5] constant({54, 54, 54, 7, 12})
  ROOT d = f16[5] subtract(e, o)
""",
        [np.array([4, 4.001, 3.9995, 2, 2.5], np.float32)],
    ),
    "products that are shown, and go into sums": (
        "",
        """
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  p = f32[4] multiply(x, y)
  ROOT d = f32[4] subtract(p, y)
""",
        [np.array([1, 1.0000001, 0.9999999, 1], np.float32), np.full(4, 2, np.float32)],
    ),
    "a value in f32, compared with itself": (
        "",
        """
  x = f16[64] parameter(0)
  r = f16[64] rsqrt(x)
  ROOT c = pred[64] compare(r, r), direction=NE
""",
        [np.linspace(0.1, 3, 64, dtype=np.float16)],
    ),
    "units of a number between the ends": (
        _ADD,
        """
  x = f32[2] parameter(0)
  zero = f32[] constant(0)
  s = f32[] reduce(x, zero), dimensions={0}, to_apply=add
  ROOT r = f32[] rsqrt(s)
""",
        [np.array([2, 2], np.float32)],
    ),
    "the least of zeros of either sign, or of subnormals": (
        _LEAST,
        """
  x = f32[4] parameter(0)
  most = f32[] constant(inf)
  m = f32[] reduce(x, most), dimensions={0}, to_apply=least
  w = f32[2] reduce-window(x, most), window={size=2 stride=2}, to_apply=least
  a = f32[] rsqrt(m)
  b = f32[2] rsqrt(w)
  ROOT t = (f32[], f32[2]) tuple(a, b)
""",
        [np.array([1e-40, 1e-40, 0, 2], np.float32)],
    ),
    "the least of zeros of either sign, scattered": (
        _LEAST + _FIRST,
        """
  x = f32[4] parameter(0)
  i = s32[1,1] constant({{1}})
  v = f32[1] constant({1e-40})
  s = f32[4] scatter(x, i, v), update_window_dims={}, inserted_window_dims={0}, \
scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=least
  most = f32[] constant(inf)
  z = f32[4] select-and-scatter(x, x, most), window={size=1}, select=first, scatter=least
  a = f32[4] rsqrt(s)
  b = f32[4] rsqrt(z)
  ROOT t = (f32[4], f32[4]) tuple(a, b)
""",
        [np.array([1e-40, 1e-40, 0, 2], np.float32)],
    ),
    "sums that are zeros of either sign": (
        _ADD,
        """
  x = f32[2] parameter(0)
  zero = f32[] constant(0)
  one = f32[] constant(1)
  s = f32[] reduce(x, zero), dimensions={0}, to_apply=add
  d = f32[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  a = f32[] divide(one, s)
  b = f32[] divide(one, d)
  ROOT t = (f32[], f32[]) tuple(a, b)
""",
        [np.array([0, 0], np.float32)],
    ),
    "constants that are added up first": (
        "",
        """
  x = f32[4] parameter(0)
  c = f32[4] constant({1e8, 1e8, 1e8, 1e8})
  d = f32[4] constant({-1e8, -1e8, -1e8, -1e8})
  s = f32[4] add(x, c)
  b = f32[4] add(s, d)
  ROOT q = f32[4] divide(x, b)
""",
        [np.array([1, 2, 3, 5], np.float32)],
    ),
    "orders that agree at one end only": (
        _SUMS,
        """
  x = f32[3,64] parameter(0)
  zero = f32[] constant(0)
  e = f32[3,64] exponential(x)
  ROOT s = (f32[64], f32[64]) reduce(e, x, zero, zero), dimensions={0}, to_apply=sums
""",
        [np.random.default_rng(0).normal(size=(3, 64)).astype(np.float32)],
    ),
    "f16 converted to bf16, which is no wider": (
        "",
        """
  x = f16[64] parameter(0)
  t = f16[64] tanh(x)
  b = bf16[64] convert(t)
  e = bf16[64] exponential(b)
  ROOT w = f32[64] convert(e)
""",
        [np.linspace(-2, 2, 64, dtype=np.float16)],
    ),
    "sums in memory": (
        """add {
  x = bf16[] parameter(0)
  y = bf16[] parameter(1)
  ROOT s = bf16[] add(x, y)
}
""",
        """
  x = bf16[1] parameter(0)
  i = s32[40,1] parameter(1)
  u = bf16[40] parameter(2)
  ROOT s = bf16[1] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, \
scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
""",
        [np.zeros(1, BF16.numpy), np.zeros((40, 1), np.int32), np.full(40, 1.2, BF16.numpy)],
    ),
    "a sort that takes each number for less than any": (
        """less {
  x = c64[] parameter(0)
  y = c64[] parameter(1)
  ROOT c = pred[] constant(true)
}
""",
        """
  x = c64[3] parameter(0)
  ROOT s = c64[3] sort(x), dimensions={0}, to_apply=less
""",
        [np.array([1, 2, 3], np.complex64)],
    ),
    "f32 that is no infinity though f16 is": (
        "",
        """
  x = f16[4] parameter(0)
  d = f16[4] add(x, x)
  e = f16[4] add(d, x)
  c = bf16[4] convert(e)
  ROOT w = f32[4] convert(c)
""",
        [np.array([6e4, -4e4, 3e4, 1e4], np.float16)],
    ),
    "factors that overflow before they meet a zero": (
        """times {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] multiply(x, y)
}
""",
        """
  x = f32[3] parameter(0)
  one = f32[] constant(1)
  ROOT p = f32[] reduce(x, one), dimensions={0}, to_apply=times
""",
        [np.array([0, 1e30, 1e30], np.float32)],
    ),
    "windows that select among subnormals": (
        _ADD + _FIRST,
        """
  x = f32[4] parameter(0)
  y = f32[2] constant({2, 3})
  zero = f32[] constant(0)
  ROOT s = f32[4] select-and-scatter(x, y, zero), window={size=2 stride=2}, select=first, \
scatter=add
""",
        [np.array([1e-40, 2e-40, 1, 2], np.float32)],
    ),
    "numbers on both sides of what is NaN in a type of no infinity": (
        "",
        """
  x = f16[4] parameter(0)
  t = f16[4] exponential(x)
  ROOT c = f8e4m3fn[4] convert(t)
""",
        [np.array([6.142, 6.141, 6.139, 1], np.float16)],
    ),
    "products of windows": (
        """times {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] multiply(x, y)
}
""",
        """
  x = f32[8] parameter(0)
  one = f32[] constant(1)
  ROOT p = f32[2] reduce-window(x, one), window={size=4 stride=4}, to_apply=times
""",
        [np.array([0, 1e30, 1e30, 1, 1.1, 1.7, 1.3, 1.9], np.float32)],
    ),
    "a sort of numbers and a NaN": (
        """less {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT c = pred[] compare(x, y), direction=LT
}
""",
        """
  x = f32[6] parameter(0)
  ROOT s = f32[6] sort(x), dimensions={0}, to_apply=less
""",
        [np.array([np.nan, 1, 1, 1, 1, 2], np.float32)],
    ),
    "the root of a zero of either sign": (
        "",
        """
  x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  p = f32[2] multiply(x, y)
  s = f32[2] sqrt(p)
  ROOT r = f32[2] rsqrt(s)
""",
        [np.array([0, 1e-30], np.float32), np.array([1, 1e-30], np.float32)],
    ),
    "NaN without mantissa bits": (
        "",
        """
  x = f32[2] parameter(0)
  s = f32[2] sqrt(x)
  ROOT r = f32[2] reduce-precision(s), exponent_bits=5, mantissa_bits=0
""",
        [np.array([-1, 2], np.float32)],
    ),
    "the greatest of numbers and a NaN, in any order": (
        """greater {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  c = pred[] compare(a, b), direction=GT
  v = f32[] select(c, a, b)
  k = s32[] select(c, i, j)
  ROOT t = (f32[], s32[]) tuple(v, k)
}
""",
        """
  x = f32[5] parameter(0)
  n = s32[5] iota(), iota_dimension=0
  least = f32[] constant(-inf)
  none = s32[] constant(-1)
  ROOT r = (f32[], s32[]) reduce(x, n, least, none), dimensions={0}, to_apply=greater
""",
        [np.array([1, 3, np.nan, 3, 2], np.float32)],
    ),
    "an infinity times a subnormal, and one beside an overflow": (
        "",
        """
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  z = f32[4] parameter(2)
  a = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  b = f32[] dot(x, z), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT t = (f32[], f32[]) tuple(a, b)
""",
        [
            np.array([np.inf, 1e30, 1e30, 1], np.float32),
            np.array([1e-40, 1, 1, 1], np.float32),
            np.array([1, -1e30, -1e30, 1], np.float32),
        ],
    ),
    "a transform of numbers whose squares vanish": (
        "",
        """
  x = c128[16,4] parameter(0)
  ROOT f = f64[16,7] fft(x), fft_type=IRFFT, fft_length={16,7}
""",
        [np.full((16, 4), 7e-302 + 7.5738683e-193j)],
    ),
    "products of f16 that become f64": (
        "",
        """
  x = f16[2] parameter(0)
  y = f16[2] parameter(1)
  ROOT d = f64[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
""",
        [np.array([5000, 1], np.float16), np.array([-100, 1.002], np.float16)],
    ),
    "a transform that overflows in between": (
        "",
        """
  x = c64[8] parameter(0)
  ROOT f = c64[8] fft(x), fft_type=IFFT, fft_length={8}
""",
        [np.full(8, 1e38, np.complex64)],
    ),
}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("what", _PROGRAMS)
@pytest.mark.parametrize("budget", [XLA_CPU, UNKNOWN], ids=lambda budget: str(budget.name))
def test_what_is_legal_is_not_called_wrong(what: str, budget: Budget) -> None:
    computations, entry, arrays = _PROGRAMS[what]
    module = hlo.parse(f"HloModule legal\n{computations}ENTRY main {{{entry}}}\n")
    for seed in range(0, 24, 2):
        for how, found in verdicts(module, arrays, seed, budget):
            assert not found.counts["outside"] and not found.wrong, how


def test_xla_adds_updates_in_memory() -> None:
    """256 and 1 are 256 in bf16."""
    computations, entry, _ = _PROGRAMS["sums in memory"]
    module = hlo.parse(f"HloModule m\n{computations}ENTRY main {{{entry}}}\n".replace("40", "400"))
    arrays = np.zeros(1, BF16.numpy), np.zeros((400, 1), np.int32), np.ones(400, BF16.numpy)
    assert contains(
        enclose(module, *arrays, peer=XLA_CPU).result, np.array([256], BF16.numpy)
    ).all()


def test_xla_adds_windows_of_f8_in_the_type() -> None:
    """16 and 1 are 16 in f8e4m3fn, eight times."""
    module = hlo.parse(f"""HloModule m
{_ADD.replace("f32", "f8e4m3fn")}ENTRY e {{
  x = f8e4m3fn[9] parameter(0)
  z = f8e4m3fn[] constant(0)
  ROOT r = f8e4m3fn[1] reduce-window(x, z), window={{size=9}}, to_apply=add
}}
""")
    x = np.array([16, *[1] * 8]).astype(_F8.numpy)
    sixteen = np.array([16]).astype(_F8.numpy)
    assert contains(enclose(module, x, peer=XLA_CPU).result, sixteen).all()
