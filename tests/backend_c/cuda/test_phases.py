"""CUDA gives the interpreter's bits in blocks of any size, and nothing races."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from conftest import TESTS, has_c_compiler

import backend_c
import hlo
import interp
from backend_c.native.cuda_emulation import Schedule
from fuzz.oracles.cuda_emulated import SIZES, cuda_emulated, fast_is_sound
from fuzz.oracles.oracle import Property
from fuzz.reducer.search import Case
from hlo.bit_equality import differences
from hlo_oracle.arguments import from_seed
from selftest.large_ops import large_ops

pytestmark = pytest.mark.skipif(not has_c_compiler(), reason="no C compiler")

# Sums of many rows; of one; over both dimensions; a softmax; a normalisation; products.
ROWS = """
HloModule rows
add { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT sum = f32[] add(a, b) }
largest { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT max = f32[] maximum(a, b) }
ENTRY main {
  x = f32[35,100] parameter(0)
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  sums = f32[35] reduce(x, zero), dimensions={1}, to_apply=add
  columns = f32[100] reduce(x, zero), dimensions={0}, to_apply=add
  total = f32[] reduce(x, zero), dimensions={0,1}, to_apply=add
  most = f32[35] reduce(x, low), dimensions={1}, to_apply=largest
  tops = f32[35,100] broadcast(most), dimensions={0}
  powers = f32[35,100] exponential(f32[35,100] subtract(x, tops))
  norms = f32[35] reduce(powers, zero), dimensions={1}, to_apply=add
  below = f32[35,100] broadcast(norms), dimensions={0}
  softmax = f32[35,100] divide(powers, below)
  products = f32[35,35] dot(x, softmax), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT all = (f32[35], f32[100], f32[], f32[35,100], f32[35,35])
      tuple(sums, columns, total, softmax, products)
}"""


def test_reductions_in_blocks_of_any_size() -> None:
    module = hlo.parse(ROWS)
    arguments = from_seed(module, 0)
    expected = interp.evaluate(module, *arguments)
    emulated = backend_c.emulate(module)
    for blocks, threads in enumerate((*SIZES, 33), start=1):
        found = emulated(*arguments, schedule=Schedule(threads, blocks, seed=threads))
        assert not differences(expected, found), threads


def test_rows_that_all_threads_share() -> None:
    module = hlo.parse("""
        HloModule m
        ENTRY main {
          x = f32[3,20000] parameter(0)
          y = f32[20000] parameter(1)
          z = f32[3,20000] broadcast(y), dimensions={1}
          ROOT r = f32[3,20000] add(x, z)
        }""")
    arguments = from_seed(module, 0)
    emulated = backend_c.emulate(module)
    (text,) = emulated.source.values()
    assert "i1 < 3; ++i1" in text and "blockDim.x + threadIdx.x; i2l < 5000" in text
    assert not differences(interp.evaluate(module, *arguments), emulated(*arguments))


def test_a_value_that_phases_hand_on() -> None:
    """Random numbers: one thread draws the key, all of them use it."""
    module = hlo.parse("""
        HloModule m
        ENTRY main {
          low = f32[] constant(0)
          high = f32[] constant(1)
          x = f32[5000] rng(low, high), distribution=rng_uniform
          y = f32[5000] rng(low, high), distribution=rng_uniform
          ROOT both = (f32[5000], f32[5000]) tuple(x, y)
        }""")
    expected = interp.evaluate(module, seed=3)
    found = backend_c.emulate(module)(seed=3, schedule=Schedule(96))
    assert not differences(expected, found)
    assert not np.array_equal(*expected)


# Defects that only emulated threads show.
OF_CUDA = {"reduction_with_a_rest", "window_that_ends_in_padding"}


def test_regressions_have_the_same_bits() -> None:
    files = sorted((TESTS / "regressions").glob("*.hlo"))
    some = {*files[::6], *(file for file in files if file.stem in OF_CUDA)}
    modules = [hlo.parse(file.read_text()) for file in sorted(some)]
    outcomes = cuda_emulated([Case(module, from_seed(module, 0)) for module in modules])
    assert {str(f): one for f, one in zip(sorted(some), outcomes) if one is not None} == {}


@pytest.mark.parametrize(
    ("oracle", "wanted"),
    [
        (cuda_emulated, ("triangular-solve of few vectors", "cumulative sum")),
        (fast_is_sound, ("dot of bf16", "sum of columns")),
    ],
)
def test_kernels_of_blocks_and_tiles(oracle: Property, wanted: Sequence[str]) -> None:
    """A few of those that ``python -m selftest.cuda_emulated`` runs."""
    cases = [Case(made, from_seed(made, 0)) for name, made in large_ops() if name in wanted]
    assert oracle(cases) == [None] * len(wanted)
